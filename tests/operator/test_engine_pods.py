"""Pods of engines that come and go: what is asked of KubeRay, what is said, and what ends an attempt."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator import documents
from tests.operator.observations import CLUSTER, NOW, job, pod, progress, ray_cluster, seen, started
from tests.operator.observations import cluster_status as cluster_document

from simplerl_api.status import Phase, Status, Termination
from simplerl_operator.build import ray_cluster as built
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.conditions import conditions
from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.decide.happenings import between
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose, figures_alone
from simplerl_operator.observe import aftermath, pods
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.observation import Head, Observation
from simplerl_operator.observe.pods import Pod
from simplerl_operator.observe.ray_cluster import Group, RayCluster, RayCondition, read

QUEUE = "kueue.x-k8s.io/queue-name"
ROLLOUT = {
    **documents.TINY["rollout"],
    "elastic": {"minEngines": 2, "maxEngines": 6},
}
SECTIONS: dict[str, Any] = {
    "rollout": ROLLOUT,
    "cluster": {"gpus": 8, "gpusPerNode": 2, "cpuOnly": True},
    "recovery": {"backoffLimit": 1, "startupDeadlineSeconds": 600, "stallTimeoutSeconds": 600},
}
"""One pod of ranks, and one to three pods of two engines each."""


def elastic(status: dict[str, Any] | None = None, engines: int | None = None, **fields: Any) -> Job:
    rollout = {**ROLLOUT, **({} if engines is None else {"engines": engines})}
    return job(status, **{**SECTIONS, "rollout": rollout, **fields})


PLAN = elastic().plan
assert PLAN is not None
HEAD, RANKS = pod("head", group="headgroup"), pod("worker", group="workers")


def engines(*numbers: int, **fields: Any) -> tuple[Pod, ...]:
    """Pods of engines by number; each has an address of its own."""
    of = (pod("worker", n, group="engines", **{"address": f"10.0.1.{n}", **fields}) for n in numbers)
    return tuple(replace(p, name=name, uid=name) for p in of for name in [p.name.replace("workers-", "engines-")])


def name(number: int) -> str:
    return f"{CLUSTER}-engines-worker-{number}"


def group(replicas: int, *leaving: int, **fields: Any) -> RayCluster:
    of = Group(index=1, replicas=replicas, leaving=tuple(map(name, leaving)))
    return ray_cluster(groups={"workers": Group(index=0, replicas=1), "engines": of}, **fields)


def running(**fields: Any) -> dict[str, Any]:
    """The status of an elastic job that trains."""
    pod_set = pods.set_digest((HEAD, RANKS))
    cluster = cluster_document(
        submissionId=CLUSTER, podSet=pod_set, readyWorkers=4, desiredWorkers=4,
        enginePods={"number": 3, "since": rfc3339(NOW - 40), "seconds": 60},
    )  # fmt: skip
    return started(
        90, **{"phase": "Training", "plan": PLAN.document(), "cluster": cluster, "scheduledTime": rfc3339(NOW - 60),
               **fields},
    )  # fmt: skip


def trains(
    cluster: RayCluster, there: tuple[Pod, ...], said: tuple[int, int], idle: tuple[int, ...] = (), **fields: Any
) -> Observation:
    """A job that trains with these pods of engines; `said`: how many live, and how many the driver wants."""
    current, desired = said
    addresses = [f"10.0.1.{n}" for n in idle]
    document = progress(state="Training", engines={"current": current, "desired": desired, "idle": addresses})
    given = {"job": elastic(running()), "progress": document, **fields}
    return seen(cluster=cluster, pods=(HEAD, RANKS, *there), **given)


PENDING = {"phase": "Pending", "ready": False, "scheduled": False, "address": None}
FULL = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
QUOTA = RayCondition("True", "FailedCreate", 'pods "x" is forbidden: exceeded quota')
SCALED: list[tuple[str, Observation, str, tuple[int, list[int]] | None, tuple[str, str, str] | None]] = [
    (
        "all are there",
        trains(group(3), engines(0, 1, 2), (6, 6)),
        "Nothing",
        None,
        ("True", "EnginesScaled", "6 of 6 engines draw, in 3 pods"),
    ),
    (
        "fewer are wanted, and none is free yet",
        trains(group(3), engines(0, 1, 2), (6, 2)),
        "Nothing",
        None,
        ("False", "EnginesLeaving", "6 engines draw, 2 are wanted: pods that hold none go"),
    ),
    (
        "one of two is free",
        trains(group(3), engines(0, 1, 2), (3, 2), idle=(1,)),
        "ScaleEngines",
        (2, [1]),
        ("False", "EnginesLeaving", "3 engines draw, 2 are wanted: pods that hold none go"),
    ),
    (
        "both are free, and one is being deleted",
        trains(group(2, 1), engines(0, 1, 2), (2, 2), idle=(1, 2)),
        "ScaleEngines",
        (1, [1, 2]),
        ("False", "EnginesLeaving", "2 engines draw, 2 are wanted: pods that hold none go"),
    ),
    (
        "more are free than should go",
        trains(group(3), engines(0, 1, 2), (2, 4), idle=(1, 2)),
        "ScaleEngines",
        (2, [1]),
        ("False", "EnginesLeaving", "2 engines draw, 4 are wanted: pods that hold none go"),
    ),
    (
        "one that waits for a node goes before one that is free",
        trains(group(3), (*engines(0, 1), *engines(2, **PENDING)), (2, 4), idle=(1,)),
        "ScaleEngines",
        (2, [2]),
        ("False", "EnginesLeaving", "2 engines draw, 4 are wanted: pods that hold none go"),
    ),
    (
        "one that misses a probe may hold an engine",
        trains(group(3), (*engines(0, 1), *engines(2, ready=False)), (4, 4)),
        "Nothing",
        None,
        ("False", "EnginesLeaving", "4 engines draw, 4 are wanted: pods that hold none go"),
    ),
    (
        "one that ended is made anew first",
        trains(group(3), (*engines(0, 1), *engines(2, phase="Failed", ready=False)), (4, 4), idle=(2,)),
        "Nothing",
        None,
        ("False", "EnginesLeaving", "4 engines draw, 4 are wanted: pods that hold none go"),
    ),
    (
        "fewer than it started with are not asked for",
        trains(group(1), engines(0), (2, 1), idle=(0,)),
        "Nothing",
        None,
        ("True", "EnginesScaled", "2 of 1 engines draw, in 1 pod"),
    ),
    (
        "more are wanted",
        trains(group(1, 2), engines(0), (2, 3)),
        "ScaleEngines",
        (2, []),
        ("False", "EnginesComing", "2 of 3 engines draw; 1 of 2 pods of engines run"),
    ),
    (
        "more are wanted than there may be",
        trains(group(1), engines(0), (2, 99)),
        "ScaleEngines",
        (3, []),
        ("False", "EnginesComing", "2 of 99 engines draw; 1 of 3 pods of engines run"),
    ),
    (
        "while one still goes",
        trains(group(1, 2), engines(0, 2), (2, 6)),
        "ScaleEngines",
        (3, [2]),
        ("False", "EnginesComing", "2 of 6 engines draw; 2 of 3 pods of engines run"),
    ),
    (
        "pods find no node",
        trains(group(3), (*engines(0, 1), *engines(2, **PENDING, unscheduled=FULL)), (4, 6)),
        "Nothing",
        None,
        ("False", "EnginesComing", f"4 of 6 engines draw; 2 of 3 pods of engines run: pod {name(2)}: {FULL}"),
    ),
    (
        "pods are not made",
        trains(group(3, conditions={"ReplicaFailure": QUOTA}), engines(0), (2, 6)),
        "Nothing",
        None,
        (
            "False",
            "EnginesComing",
            '2 of 6 engines draw; 1 of 3 pods of engines run: pods "x" is forbidden: exceeded quota',
        ),
    ),
    (
        "an engine loads its model",
        trains(group(3), engines(0, 1, 2), (4, 6)),
        "Nothing",
        None,
        ("False", "EnginesComing", "4 of 6 engines draw; all of their pods run"),
    ),
    (
        "the spec wants another number",
        trains(group(3), engines(0, 1, 2), (6, 6), job=elastic(running(), engines=4)),
        "SetEngines",
        None,
        ("False", "AskingDriver", "the driver is asked for 4 engines"),
    ),
    (
        "as many as there may be",
        trains(group(2), engines(0, 1), (4, 4), job=elastic(running(), engines=6)),
        "SetEngines",
        None,
        ("False", "AskingDriver", "the driver is asked for 6 engines"),
    ),
    (
        "the driver knows it",
        trains(group(3), engines(0, 1, 2), (4, 4), idle=(0,), job=elastic(running(), engines=4)),
        "ScaleEngines",
        (2, [0]),
        ("False", "EnginesLeaving", "4 engines draw, 4 are wanted: pods that hold none go"),
    ),
    (
        "a silent driver's word is old",
        trains(group(3), engines(0, 1, 2), (2, 2), idle=(1, 2), head=Head(silence="no answer")),
        "Nothing",
        None,
        ("False", "EnginesLeaving", "2 engines draw, 2 are wanted: pods that hold none go"),
    ),
    (
        "nothing is known of engines yet",
        trains(group(3), engines(0, 1, 2), (6, 6), progress=progress(state="Training")),
        "Nothing",
        None,
        None,
    ),
    (
        "Kueue gave the RayCluster a queue",
        trains(group(3, queue="default"), engines(0, 1, 2), (2, 2), idle=(1, 2)),
        "Nothing",
        None,
        (
            "False",
            "QueueManaged",
            "the pods of engines stay as they are: the job is in a queue of Kueue, which would suspend a RayCluster "
            "whose replicas change",
        ),
    ),
]


def scaled(observation: Observation, decision: Decision) -> tuple[str, str, str] | None:
    found = next((c for c in conditions(observation.job, decision, NOW) if c.type == "EnginesScaled"), None)
    return None if found is None else (found.status, found.reason, found.message)


@pytest.mark.parametrize(
    ("observation", "action", "change", "told"), [s[1:] for s in SCALED], ids=[s[0] for s in SCALED]
)
def test_pods_come_and_go(
    observation: Observation,
    action: str,
    change: tuple[int, list[int]] | None,
    told: tuple[str, str, str] | None,
) -> None:
    decision = decide(observation, NOW)
    found = decision.engine_pods
    assert (decision.action, decision.phase) == (Action(action), Phase.TRAINING)
    assert (found and (found.replicas, found.leaving)) == (change and (change[0], tuple(map(name, change[1]))))
    assert scaled(observation, decision) == told


def test_an_operator_that_has_not_heard_the_driver_yet_leaves_standing_what_was_said() -> None:
    before = {"type": "EnginesScaled", "status": "False", "reason": "EnginesComing", "message": "2 of 6 engines draw"}
    status = running(conditions=[{**before, "lastTransitionTime": rfc3339(NOW - 9)}])
    observation = trains(group(3), engines(0), (2, 6), job=elastic(status), progress=None)
    assert scaled(observation, decide(observation, NOW)) == ("False", "EnginesComing", "2 of 6 engines draw")


def test_in_a_queue_all_start_and_stay() -> None:
    queued = elastic(labels={QUEUE: "team-a"})
    assert queued.plan is not None
    assert queued.plan.min_engines is None
    (workers,) = built.ray_cluster(queued)["spec"]["workerGroupSpecs"]
    assert (workers["groupName"], workers["minReplicas"], workers["replicas"], workers["maxReplicas"]) == (
        "workers", 4, 4, 4,
    )  # fmt: skip
    there = (HEAD, *(pod("worker", n, group="workers") for n in range(4)))
    cluster = cluster_document(submissionId=CLUSTER, podSet=pods.set_digest(there))
    status = running(plan=queued.plan.document(), cluster=cluster)
    observation = trains(ray_cluster(), (), (6, 6), job=elastic(status, labels={QUEUE: "team-a"}))
    observation = replace(observation, pods=there)
    told = scaled(observation, decide(observation, NOW))
    assert told is not None
    assert told[:2] == ("False", "QueueManaged")


RISING: list[tuple[str, tuple[Pod, ...], str, str]] = [
    (
        "nothing is there yet",
        (),
        "WaitingForPods",
        "0 of 5 pods are ready; the head, 1 with ranks and 1 with engines are enough",
    ),
    (
        "a rank is missing",
        (HEAD, replace(RANKS, ready=False, phase="Pending"), *engines(0, 1, 2)),
        "WaitingForPods",
        "4 of 5 pods are ready; the head, 1 with ranks and 1 with engines are enough",
    ),
    (
        "the last of the engines finds no node, which is not what it waits for",
        (HEAD, replace(RANKS, ready=False, phase="Pending"), *engines(0, 1), *engines(2, **PENDING, unscheduled=FULL)),
        "WaitingForPods",
        "3 of 5 pods are ready; the head, 1 with ranks and 1 with engines are enough",
    ),
    (
        "no engine finds a node",
        (HEAD, RANKS, *engines(0, 1, 2, **PENDING, unscheduled=FULL)),
        "Unschedulable",
        f"2 of 5 pods are placed; worker pod {name(0)}: {FULL}",
    ),
    ("enough are there", (HEAD, RANKS, *engines(0)), "ProvingTokenAuth", "enough pods are ready; the head's dashboard "
     "does not answer yet"),
    (
        "others find no node",
        (HEAD, RANKS, *engines(0), *engines(1, 2, **PENDING, unscheduled=FULL)),
        "ProvingTokenAuth",
        "enough pods are ready; the head's dashboard does not answer yet",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("there", "reason", "message"), [r[1:] for r in RISING], ids=[r[0] for r in RISING])
def test_it_starts_with_the_least(there: tuple[Pod, ...], reason: str, message: str) -> None:
    observation = seen(job=elastic(started(plan=PLAN.document())), cluster=group(3), pods=there)
    decision = decide(observation, NOW)
    assert (decision.reason, decision.message) == (reason, message)


ENDED = (Termination(pod="p", container="ray-worker", exit_code=137, reason="OOMKilled"),)
LOSSES: list[tuple[str, Observation, Phase, str]] = [
    ("a pod of engines is gone", trains(group(3), engines(0, 1), (6, 6)), Phase.TRAINING, "Training"),
    (
        "one ended",
        trains(group(3), (*engines(0, 1), *engines(2, phase="Failed", terminations=ENDED)), (6, 6)),
        Phase.TRAINING,
        "Training",
    ),
    (
        "one was evicted",
        trains(group(3), engines(0, 1), (6, 6), lost=engines(2, phase="Failed", disruption="EvictionByEvictionAPI: x")),
        Phase.TRAINING,
        "Training",
    ),
    ("all of them are gone", trains(group(3), (), (6, 6)), Phase.TRAINING, "Training"),
    (
        "the pod of ranks is gone",
        replace(trains(group(3), engines(0, 1, 2), (6, 6)), pods=(HEAD, *engines(0, 1, 2))),
        Phase.RECOVERING,
        "WorkerLost",
    ),
    (
        "another one is in its place",
        replace(trains(group(3), engines(0, 1, 2), (6, 6)), pods=(HEAD, replace(RANKS, uid="new"), *engines(0, 1, 2))),
        Phase.RECOVERING,
        "WorkerLost",
    ),
    (
        "the pod of ranks was evicted",
        replace(
            trains(group(3), engines(0, 1, 2), (6, 6)),
            pods=(HEAD, replace(RANKS, phase="Failed", disruption="EvictionByEvictionAPI"), *engines(0, 1, 2)),
        ),
        Phase.RECOVERING,
        "Interrupted",
    ),
    (
        "the driver fails, long after a pod of engines was evicted",
        trains(
            group(3),
            engines(0, 1, 2),
            (6, 6),
            lost=engines(5, phase="Failed", disruption="EvictionByEvictionAPI"),
            progress=progress(state="Failed", failure={"reason": "LostRank", "message": "rank 0 ended"}),
        ),
        Phase.RECOVERING,
        "LostRank",
    ),
]


@pytest.mark.parametrize(("observation", "phase", "reason"), [c[1:] for c in LOSSES], ids=[c[0] for c in LOSSES])
def test_only_what_it_cannot_do_without_ends_an_attempt(observation: Observation, phase: Phase, reason: str) -> None:
    status = compose(observation, decide(observation, NOW), NOW)
    ready = next(c for c in status.conditions if c.type == "Ready")
    assert (status.phase, ready.reason) == (phase, reason)
    assert status.failures == (reason in ("WorkerLost", "LostRank"))
    assert aftermath.lost_unseen(observation) == (reason == "WorkerLost")


NO_ENGINES = {"reason": "LostEngines", "message": "no rollout engine is left"}
STOOD_STILL = {"state": "Training", "lastProgress": NOW - 700, "activity": "rollout"}
LONG_AGO = dict.fromkeys(("startTime", "attemptStartTime"), rfc3339(NOW - 9000))
WITHOUT: list[tuple[str, Observation, str, str, int]] = [
    (
        "no engine is left, and no pod for one",
        trains(group(3), engines(0, **PENDING, unscheduled=FULL), (0, 6),
               progress=progress(state="Failed", failure=NO_ENGINES)),
        "Interrupted",
        f"no rollout engine is left; 0 of at least 1 pods of engines are ready: pod {name(0)}: {FULL}",
        0,
    ),
    (
        "though there are pods",
        trains(group(3), engines(0, 1, 2), (0, 6), progress=progress(state="Failed", failure=NO_ENGINES)),
        "LostEngines",
        "no rollout engine is left",
        1,
    ),
    (
        "nothing moves, and there is no pod for an engine",
        trains(group(3), (), (0, 6), job=elastic(running(**LONG_AGO)),
               progress=progress(**STOOD_STILL)),
        "Interrupted",
        "nothing moved in rollout for 600 s (spec.recovery.stallTimeoutSeconds); 0 of at least 1 pods of engines are "
        "ready",
        0,
    ),
    (
        "nothing moves, though there are",
        trains(group(3), engines(0), (0, 6), job=elastic(running(**LONG_AGO)),
               progress=progress(**STOOD_STILL)),
        "Stalled",
        "nothing moved in rollout for 600 s (spec.recovery.stallTimeoutSeconds)",
        1,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("observation", "reason", "message", "failures"), [w[1:] for w in WITHOUT], ids=[w[0] for w in WITHOUT]
)
def test_an_attempt_that_the_cluster_gives_no_engines_is_not_charged(
    observation: Observation, reason: str, message: str, failures: int
) -> None:
    status = compose(observation, decide(observation, NOW), NOW)
    ended = status.attempts[-1]
    assert (status.phase, ended.reason, ended.message) == (Phase.RECOVERING, reason, message)
    assert (status.failures, status.interruptions) == (failures, 1 - failures)


def test_the_next_attempt_goes_on_in_pods_that_are_well_whatever_engines_came_and_went() -> None:
    first = trains(group(3), engines(0), (6, 6), progress=progress(state="Failed", failure=NO_ENGINES))
    status = compose(first, decide(first, NOW), NOW)
    again = seen(job=elastic(status.document()), cluster=group(2), pods=(HEAD, RANKS, *engines(7)))
    decision = decide(again, NOW + 60)
    assert decision.message == f"attempt 2 begins in RayCluster {CLUSTER}, whose pods are well"
    after = compose(again, decision, NOW + 60)
    assert after.cluster is not None
    assert after.cluster.engine_pods is None, "its GPU-seconds are counted from here on"


def test_what_one_pod_of_engines_does_is_written_with_the_figures() -> None:
    full = trains(group(3), engines(0, 1, 2), (6, 6))
    before = compose(full, decide(full, NOW), NOW)
    fewer = replace(full, pods=full.pods[:-1], job=elastic(before.document()))
    after = compose(fewer, decide(fewer, NOW), NOW)
    assert after.cluster is not None
    assert (after.cluster.ready_workers, after.cluster.desired_workers) == (3, 4)
    assert not figures_alone(before, after), "that engines are missing is news"
    assert [h.reason for h in between(before, after)] == ["EnginesComing"]
    fewest = replace(full, pods=full.pods[:-2], job=elastic(after.document()))
    later = compose(fewest, decide(fewest, NOW + 5), NOW + 5)
    assert later.cluster is not None
    assert (later.cluster.ready_workers, later.cluster.desired_workers) == (2, 4)
    assert figures_alone(after, later), "that one more is missing is not"
    assert between(after, later) == []
    assert between(later, before)[0].message == "6 of 6 engines draw, in 3 pods"


GPUS = {"gpus": 8, "gpusPerNode": 2}


def used(there: tuple[Pod, ...], done: bool) -> Status:
    """40 s with three pods after 60 seconds of pods; the pod of ranks has had its node for 60 s."""
    document = progress(state="Succeeded", step=60) if done else progress(
        state="Training", engines={"current": 6, "desired": 6}
    )  # fmt: skip
    observation = trains(group(3), there, (6, 6), job=elastic(running(), cluster=GPUS), progress=document)
    return compose(observation, decide(observation, NOW), NOW)


def test_gpu_seconds_count_pods_of_engines_while_they_are_there() -> None:
    assert used(engines(0, 1, 2), done=True).gpu_seconds == 2 * (60 + 60 + 3 * 40)
    cluster = used(engines(0, 1, 2), done=False).cluster
    assert cluster is not None
    assert cluster.engine_pods is not None
    assert (cluster.engine_pods.number, cluster.engine_pods.seconds) == (3, 60)
    cluster = used((*engines(0), *engines(1, **PENDING)), done=False).cluster
    assert cluster is not None
    assert cluster.engine_pods is not None
    counted = cluster.engine_pods
    assert (counted.number, counted.seconds, counted.since) == (1, 60 + 3 * 40, rfc3339(NOW))


def test_a_pod_of_engines_that_went_leaves_no_evidence_but_of_a_fault() -> None:
    evidence, of = Evidence(), elastic(running())
    crash = Termination(pod="p", container="ray-worker", exit_code=1, reason="Error", log="no room")
    (well,), (taken,) = engines(0, deleting=True), engines(1, deleting=True, terminations=ENDED)
    (crashed,) = engines(2, phase="Failed", terminations=(crash,))
    for gone in (well, taken, crashed):
        evidence.note(of.key, gone, gone=True)
    assert [p.name for p in evidence.lost(of, set())] == [name(2)]


def test_the_group_is_read_as_it_was_built() -> None:
    manifest = built.ray_cluster(elastic(engines=3))
    manifest["metadata"] |= {"uid": "u", "creationTimestamp": rfc3339(NOW)}
    assert read(manifest).groups == {
        "workers": Group(index=0, replicas=1), "engines": Group(index=1, replicas=2),
    }  # fmt: skip
    manifest["spec"]["workerGroupSpecs"][1]["scaleStrategy"] = {"workersToDelete": ["a"]}
    manifest["metadata"]["labels"][QUEUE] = "default"
    found = read(manifest)
    assert (found.groups["engines"].leaving, found.queue) == (("a",), "default")


def test_pods_of_ranks_alone_drain_before_they_end() -> None:
    ranks, passing = built.ray_cluster(elastic())["spec"]["workerGroupSpecs"]
    assert "lifecycle" in ranks["template"]["spec"]["containers"][0]
    assert "lifecycle" not in passing["template"]["spec"]["containers"][0]
    assert [g["template"]["spec"]["terminationGracePeriodSeconds"] for g in (ranks, passing)] == [150, 30]
    marks = [g["rayStartParams"]["resources"] for g in (ranks, passing)]
    assert marks == ["'{\"simplerl_ranks\": 1}'", "'{\"simplerl_engines\": 1}'"]
