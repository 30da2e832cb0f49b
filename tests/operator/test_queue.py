"""A job that Kueue holds back, takes back and admits: decisions, and what is passed on to its children."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.operator.observations import (
    CLUSTER,
    NOW,
    all_pods,
    cluster_status,
    job,
    pod,
    progress,
    ray_cluster,
    seen,
    started,
    submitted,
)

from simplerl_api.status import Phase, Status
from simplerl_operator.build import ray_cluster as ray_clusters
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide import rules, status
from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.observe import workload as workloads
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.observation import Observation
from simplerl_operator.observe.workload import Workload

QUEUE = "kueue.x-k8s.io/queue-name"
NO_ROOM = "couldn't assign flavors to pod set head: insufficient unused quota for cpu in flavor default, 1 more needed"
TAKEN = "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to prioritization in the ClusterQueue"
HELD = ray_cluster(suspended=True, conditions={})


def workload(**conditions: tuple[str, str, str]) -> Workload:
    """A Workload in LocalQueue team-a with conditions of (status, reason, message)."""
    rows = [
        {"type": kind, "status": word, "reason": reason, "message": message, "lastTransitionTime": rfc3339(NOW - 5)}
        for kind, (word, reason, message) in conditions.items()
    ]
    document = {"metadata": {"name": "w"}, "spec": {"queueName": "team-a"}, "status": {"conditions": rows}}
    return workloads.read(document)


def decide(observation: Observation) -> tuple[Decision, Status]:
    decision = rules.decide(observation, NOW)
    return decision, status.compose(observation, decision, NOW)


PENDING = workload(QuotaReserved=("False", "Pending", NO_ROOM))
PREEMPTED = workload(
    QuotaReserved=("False", "Pending", TAKEN),
    Evicted=("True", "Preempted", TAKEN),
    Admitted=("False", "NoReservation", ""),
)
TIMED_OUT = workload(Evicted=("True", "PodsReadyTimeout", "Exceeded the PodsReady timeout team-a/w"))

WAITING: dict[str, tuple[Observation, str, str, float]] = {
    "Kueue says why there is no room": (
        seen(started(), cluster=HELD, pods=(), workload=PENDING),
        "Queued", f"waiting in LocalQueue team-a: {NO_ROOM}", 30.0,
    ),
    "Kueue has not said anything yet": (
        seen(started(), cluster=HELD, pods=(), workload=workload()),
        "Queued", "waiting in LocalQueue team-a: Kueue has not decided yet", 2.0,
    ),
    "suspended without a Workload": (
        seen(started(), cluster=HELD, pods=()),
        "Queued", f"RayCluster {CLUSTER} is suspended, and Kueue has no Workload for it yet", 2.0,
    ),
    "preempted while it trained": (
        seen(
            submitted(phase="Training"), cluster=HELD, pods=(), workload=PREEMPTED, progress=progress(state="Training"),
        ),
        "Preempted", f"Kueue took the pods back into LocalQueue team-a (Preempted): {TAKEN}", 30.0,
    ),
    "evicted for another reason while it started": (
        seen(submitted(), cluster=HELD, pods=(), workload=TIMED_OUT),
        "Evicted",
        "Kueue took the pods back into LocalQueue team-a (PodsReadyTimeout): Exceeded the PodsReady timeout team-a/w",
        2.0,
    ),
    "long after the startup deadline": (
        seen(started(5000), cluster=HELD, pods=(), workload=PENDING),
        "Queued", f"waiting in LocalQueue team-a: {NO_ROOM}", 30.0,
    ),
    "the driver's last words were of pods that went": (
        seen(
            submitted(phase="Training"), cluster=HELD, pods=(), workload=PREEMPTED,
            progress=progress(state="Failed", failure={"reason": "LostRank", "message": "rank 1 is gone"}),
        ),
        "Preempted", f"Kueue took the pods back into LocalQueue team-a (Preempted): {TAKEN}", 30.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITING)
def test_a_job_that_waits_says_why(name: str) -> None:
    observation, reason, message, wake = WAITING[name]
    decision, after = decide(observation)
    assert (decision.action, decision.phase, decision.reason) == (Action.NOTHING, Phase.QUEUED, reason)
    assert (decision.message, decision.wake) == (message, wake)
    ready = next(c for c in after.conditions if c.type == "Ready")
    assert (ready.status, ready.reason, ready.message) == ("False", reason, message)
    assert next(c for c in after.conditions if c.type == "Reconciling").status == "True"
    assert after.cluster is not None
    assert (after.cluster.name, after.cluster.submission_id, after.cluster.pod_set) == (CLUSTER, None, None)
    assert after.completion_time is None


def test_what_was_trained_stays_said_while_the_job_waits() -> None:
    """The newest step that was heard of is written with the eviction, and stays."""
    observation = seen(
        submitted(phase="Training"), cluster=HELD, pods=(), workload=PREEMPTED,
        progress=progress(state="Training", step=7, totalSteps=60),
    )  # fmt: skip
    _, after = decide(observation)
    assert after.training is not None
    assert after.training.step == 7
    _, later = decide(seen(after.document(), cluster=HELD, pods=(), workload=PREEMPTED))
    assert later.training == after.training


def test_a_driver_that_had_finished_has_succeeded() -> None:
    """Kueue took the pods in the moment in which the last step was done."""
    observation = seen(
        submitted(phase="Training"), cluster=HELD, pods=(), workload=PREEMPTED,
        progress=progress(state="Succeeded", step=60, totalSteps=60),
    )  # fmt: skip
    decision, _ = decide(observation)
    assert (decision.phase, decision.reason) == (Phase.SUCCEEDED, "Completed")


def test_admission_is_written_before_anything_else_and_clocks_count_from_it() -> None:
    queued = started(5000, phase="Queued", cluster=cluster_status(readyWorkers=0))
    decision, after = decide(seen(queued, pods=()))
    assert (decision.phase, decision.reason, decision.wake) == (Phase.PROVISIONING, "WaitingForPods", 0.0)
    assert decision.message == "admitted by Kueue; the pods are being made"
    assert after.admitted_time == rfc3339(NOW)
    decision, _ = decide(seen(after.document(), pods=all_pods(ready=False)))
    assert (decision.phase, decision.reason) == (Phase.PROVISIONING, "WaitingForPods")  # not StartupDeadlineExceeded


def test_an_admission_that_nobody_saw_is_written_too() -> None:
    """Where there is room, Kueue admits before the operator has looked."""
    running = workload(QuotaReserved=("True", "QuotaReserved", ""), Admitted=("True", "Admitted", ""))
    _, after = decide(seen(started(), pods=all_pods(ready=False), workload=running))
    assert after.admitted_time == rfc3339(NOW)


def again(since: str, **fields: Any) -> Observation:
    """A job that trained under the admission of 12:00, as an operator finds it that was away."""
    rows = [
        {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": since},
        {
            "type": "Evicted", "status": "False", "reason": "QuotaReserved", "message": f"Previously: {TAKEN}",
            "lastTransitionTime": since,
        },
    ]  # fmt: skip
    running = workloads.read({"metadata": {"name": "w"}, "spec": {}, "status": {"conditions": rows}})
    status = submitted(phase="Training", admittedTime=rfc3339(NOW - 900), training=documents_training(7))
    status["cluster"]["admission"] = "2027-01-15T12:00:00Z"
    status["plan"] |= {"placement": "Colocated", "ranks": 3}
    found = job(status, placement={"colocated": {}}, labels={QUEUE: "team-a"}, recovery={"backoffLimit": 1})
    others = tuple(replace(p, uid=f"new-{p.uid}", ready=False) for p in all_pods())
    return seen(job=found, **{"pods": others, "workload": running, **fields})


def documents_training(step: int) -> dict[str, Any]:
    return {"step": step, "totalSteps": 60, "progressPercent": 11, "lastUpdateTime": rfc3339(NOW - 60)}


def test_pods_that_kueue_took_and_gave_again_while_nobody_looked_are_not_charged() -> None:
    decision, after = decide(again("2027-01-15T12:07:00Z"))
    assert (decision.phase, decision.reason, decision.wake) == (Phase.QUEUED, "Evicted", 0.0)
    assert decision.message == f"Kueue took the pods back and admitted the job again while nobody looked: {TAKEN}"
    assert (after.failures, after.interruptions, after.attempts[-1].last_step) == (0, 1, 7)
    observation = again("2027-01-15T12:07:00Z")
    next_look = replace(observation, job=replace(observation.job, status=after))
    _, begun = decide(next_look)
    assert (begun.phase, begun.attempt, begun.admitted_time) == (Phase.PROVISIONING, 2, rfc3339(NOW))
    assert begun.cluster is not None
    assert (begun.cluster.admission, begun.cluster.pod_set) == ("2027-01-15T12:07:00Z", None)
    # its new pods come up, and are no loss
    decision, later = decide(replace(observation, job=replace(observation.job, status=begun)))
    assert (decision.phase, decision.reason, later.failures) == (Phase.PROVISIONING, "WaitingForPods", 0)


NO_EVICTION: dict[str, Observation] = {
    "the same admission": again("2027-01-15T12:00:00Z"),
    "no Workload": again("2027-01-15T12:07:00Z", workload=None),
    "an admission that was never known": (
        lambda o: replace(o, job=replace(o.job, status=o.job.status.model_copy(
            update={"cluster": o.job.status.cluster.model_copy(update={"admission": None})}  # type: ignore[union-attr]
        )))
    )(again("2027-01-15T12:07:00Z")),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_EVICTION)
def test_other_pods_without_an_eviction_are_a_loss(name: str) -> None:
    decision, after = decide(NO_EVICTION[name])
    assert (decision.phase, decision.reason) == (Phase.RECOVERING, "WorkerLost")
    assert (after.failures, after.interruptions) == (1, 0)


def test_a_queue_without_kueue_is_said() -> None:
    waiting = seen(
        job=job(started(60), labels={QUEUE: "team-a"}),
        cluster=ray_cluster(created=rfc3339(NOW - 30)), pods=all_pods(ready=False),
    )  # fmt: skip
    decision, _ = decide(waiting)
    said = f"label {QUEUE} is team-a, but no Kueue has taken RayCluster {CLUSTER}: it does not queue"
    assert decision.message == f"0 of 4 pods are ready; {said}"
    decision, _ = decide(replace(waiting, cluster=ray_cluster(created=rfc3339(NOW - 3))))
    assert decision.message == "0 of 4 pods are ready"


def test_pods_that_kueue_took_are_no_losses_whenever_they_are_heard_of() -> None:
    evidence, given = Evidence(), job(started())
    head, worker = pod("head", phase="Failed"), pod("worker", deleting=True)
    evidence.note(given.key, head, gone=False)
    evidence.retire(given.key, {worker.uid})
    evidence.note(given.key, head, gone=True)
    evidence.note(given.key, worker, gone=True)
    assert evidence.lost(given, set()) == ()
    new = pod("worker", uid="new")
    evidence.note(given.key, new, gone=True)
    assert evidence.lost(given, set()) == (new,)


LABELS = {
    QUEUE: "team-a",
    "kueue.x-k8s.io/priority-class": "high",
    "volcano.sh/queue-name": "v",
    "yunikorn.apache.org/queue": "root.y",
    "kai.scheduler/queue": "k",
    "app.kubernetes.io/instance": "argo",  # kuberay#5114 (22): a copied label makes deploy tools prune children
    "team": "a",
}
ANNOTATIONS = {
    "kueue.x-k8s.io/podset-required-topology": "block",
    "kueue.x-k8s.io/podset-slice-size": "2",
    "scheduling.volcano.sh/queue-name": "v",
    "kubectl.kubernetes.io/last-applied-configuration": "{}",
}


def test_the_page_lists_what_is_passed_on() -> None:
    """docs/kueue.md and the code name the same labels and annotations, in the same place."""
    page = (Path(__file__).parents[2] / "docs/kueue.md").read_text("utf-8")
    rows = [line.split("|")[2:4] for line in page.splitlines() if line.startswith("| ") and "label" in line]
    on_cluster, on_pods = ({n for row in rows for n in re.findall(r"`([^`]+/[^`]+)`", row[i])} for i in (0, 1))
    every = {name: "x" for name in on_cluster | on_pods}
    manifest = ray_clusters.ray_cluster(job(started(), labels=every, annotations=every))
    worker = manifest["spec"]["workerGroupSpecs"][0]["template"]["metadata"]
    assert on_cluster == {k for k, v in named(manifest["metadata"]) if v == "x"}
    assert on_pods == {k for k, v in named(worker) if v == "x"}


def named(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    return [*metadata["labels"].items(), *metadata["annotations"].items()]


def test_queues_and_schedulers_get_what_they_read_and_nothing_else() -> None:
    """Complaint 22: an allow-list, never a copy."""
    manifest = ray_clusters.ray_cluster(job(started(), labels=LABELS, annotations=ANNOTATIONS))
    plain = ray_clusters.ray_cluster(job(started()))

    def added(where: str, *path: Any) -> dict[str, str]:
        def find(document: Any) -> dict[str, str]:
            for key in path:
                document = document[key]
            return dict(document["metadata"].get(where, {}))

        before = find(plain)
        return {name: value for name, value in find(manifest).items() if name not in before}

    head, worker = ("spec", "headGroupSpec", "template"), ("spec", "workerGroupSpecs", 0, "template")
    to_pods = {"yunikorn.apache.org/queue": "root.y", "kai.scheduler/queue": "k"}
    topology = {"kueue.x-k8s.io/podset-required-topology": "block", "scheduling.volcano.sh/queue-name": "v"}
    assert added("labels") == {k: v for k, v in LABELS.items() if k not in ("app.kubernetes.io/instance", "team")}
    assert added("annotations") == {"scheduling.volcano.sh/queue-name": "v"}
    assert added("labels", *head) == added("labels", *worker) == to_pods
    assert added("annotations", *head) == topology
    assert added("annotations", *worker) == {**topology, "kueue.x-k8s.io/podset-slice-size": "2"}
