"""Every fault in every phase of an attempt: what is said, what is charged, and that the pods are released at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.observations import (
    CLUSTER,
    NOW,
    UID,
    all_pods,
    job,
    locked,
    pod,
    progress,
    seen,
    started,
    submitted,
)

from simplerl_api.status import Phase, Status, Termination
from simplerl_operator.clock import rfc3339, seconds
from simplerl_operator.decide import retries
from simplerl_operator.decide.decision import Action, Begin
from simplerl_operator.decide.failure import lose
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe.observation import Observation

LIMIT = {"backoffLimit": 2, "startupDeadlineSeconds": 600, "stallTimeoutSeconds": 600}
COLOCATED = {"placement": {"colocated": {}}, "recovery": LIMIT}
OOM = (Termination(pod="p", container="ray-worker", exit_code=137, reason="OOMKilled"),)


def at(phase: str) -> Observation:
    """A job in a phase, all well."""
    status: dict[str, dict[str, Any]] = {
        "Provisioning": started(cluster={"name": CLUSTER, "uid": "c"}),
        "Starting": submitted(),
        "Training": submitted(phase="Training"),
    }
    plan = {**status[phase]["plan"], "placement": "Colocated", "ranks": 3}
    found = seen(job=job({**status[phase], "plan": plan}, **COLOCATED))
    if phase == "Provisioning":
        return replace(found, pods=all_pods(ready=False, phase="Pending"))
    return replace(found, progress=progress(state=phase))


def with_pod(observation: Observation, index: int, **fields: Any) -> Observation:
    pods = list(observation.pods)
    pods[index] = replace(pods[index], **fields)
    return replace(observation, pods=tuple(pods))


def failed(observation: Observation) -> Observation:
    return replace(
        observation, progress=progress(state="Failed", failure={"reason": "LostRank", "message": "rank 1 ended"})
    )


FAULTS: dict[str, tuple[Callable[[Observation], Observation], str, bool]] = {
    "head lost": (lambda o: with_pod(o, 0, phase="Failed", terminations=OOM), "HeadLost", True),
    "worker lost": (lambda o: with_pod(o, 2, phase="Failed", terminations=OOM), "WorkerLost", True),
    "head preempted": (
        lambda o: with_pod(o, 0, phase="Failed", disruption="PreemptionByScheduler"), "Interrupted", False,
    ),
    "worker evicted": (
        lambda o: with_pod(o, 1, phase="Failed", disruption="EvictionByEvictionAPI"), "Interrupted", False,
    ),
    "node gone": (
        lambda o: with_pod(o, 3, phase="Failed", disruption="DeletionByTaintManager"), "Interrupted", False,
    ),
    "cluster deleted by somebody": (lambda o: replace(o, cluster=None), "ClusterLost", True),
    "driver failed": (failed, "LostRank", True),
    "driver killed": (
        lambda o: replace(o, progress=None, head=locked("FAILED", exit_code=-9)), "DriverFailed", True,
    ),
    "driver forgotten": (lambda o: replace(o, progress=None, head=locked()), "SubmissionLost", True),
    "driver drained": (lambda o: replace(o, progress=progress(state="Drained")), "Drained", False),
}  # fmt: skip
OF_DRIVERS = {"driver failed", "driver killed", "driver forgotten", "driver drained"}
CASES = [
    (fault, phase)
    for fault in FAULTS
    for phase in ("Provisioning", "Starting", "Training")
    if phase != "Provisioning" or fault not in OF_DRIVERS
]


def turn(observation: Observation, now: float) -> tuple[Status, Action, Begin | None]:
    decision = decide(observation, now)
    return compose(observation, decision, now), decision.action, decision.begin


@pytest.mark.parametrize(("fault", "phase"), CASES, ids=[f"{f}, {p}" for f, p in CASES])
def test_a_fault_ends_the_attempt_releases_the_pods_and_leads_to_another(fault: str, phase: str) -> None:
    happens, reason, charged = FAULTS[fault]
    observation = happens(at(phase))
    status, action, _ = turn(observation, NOW)
    assert (status.phase, action) == (Phase.RECOVERING, Action.NOTHING)
    assert status.attempts[-1].reason == reason
    assert (status.failures, status.interruptions) == ((1, 0) if charged else (0, 1))
    assert status.next_retry_time is not None
    assert seconds(status.next_retry_time) - NOW <= retries.LONGEST_DELAY

    # the very next look: the pods are released, or kept for a driver that alone ended
    between = replace(observation, job=replace(observation.job, status=status), progress=None, head=None)
    again, action, _ = turn(between, NOW + 1)
    in_place = fault in OF_DRIVERS - {"driver forgotten"}
    expected = Action.NOTHING if in_place or between.cluster is None else Action.RELEASE
    assert (again.phase, action, again.failures) == (Phase.RECOVERING, expected, status.failures)

    # once they are gone, or the back-off is over, the next attempt begins; never before
    if not in_place:
        waiting, action, begins = turn(replace(between, cluster=None), NOW + 60)
        assert (waiting.phase, action, begins) == (Phase.RECOVERING, Action.NOTHING, None)
    gone = between if in_place else replace(between, cluster=None, pods=())
    begun, _, begins = turn(gone, NOW + 60)
    assert begins is (Begin.SAME_CLUSTER if in_place else Begin.NEW_CLUSTER)
    assert begun.attempt == 2
    assert (begun.cluster is not None) == in_place
    assert begun.cluster is None or begun.cluster.submission_id is None


@pytest.mark.parametrize("fault", FAULTS)
def test_the_last_failure_that_is_charged_fails_the_job(fault: str) -> None:
    happens, reason, charged = FAULTS[fault]
    observation = at("Training")
    status = observation.job.status.model_copy(update={"failures": 2})
    status, _, _ = turn(happens(replace(observation, job=replace(observation.job, status=status))), NOW)
    if charged:
        assert status.phase is Phase.FAILED
        assert status.failure is not None
        assert status.failure.reason == reason
        assert status.failure.message.endswith(" (failure 3; spec.recovery.backoffLimit is 2)")
    else:
        assert (status.phase, status.failures) == (Phase.RECOVERING, 2)


@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in OF_DRIVERS])
def test_a_fault_while_the_job_is_being_suspended_is_none(fault: str) -> None:
    observation = at("Training")
    suspending = replace(
        observation.job,
        status=observation.job.status.model_copy(update={"phase": Phase.SUSPENDING, "suspend_time": rfc3339(NOW - 5)}),
    )
    status, _, _ = turn(FAULTS[fault][0](replace(observation, job=suspending)), NOW)
    assert (status.phase, status.failures, status.attempts) == (Phase.SUSPENDING, 0, [])


@pytest.mark.parametrize("reason", retries.FINAL)
def test_what_is_final_is_not_tried_again(reason: str) -> None:
    decision = lose(at("Training"), NOW, reason, "why")
    assert (decision.phase, decision.message) == (Phase.FAILED, "why")


def test_a_container_that_ran_out_of_memory_is_added_when_it_is_heard_of_after_the_driver() -> None:
    status, _, _ = turn(failed(at("Training")), NOW)
    assert status.attempts[-1].terminations == []
    base = at("Training")
    other = (Termination(pod="q", container="ray-head", exit_code=143, reason="Error"),)
    later = with_pod(with_pod(base, 2, phase="Failed", terminations=OOM), 0, terminations=other)
    later = replace(later, job=replace(base.job, status=status), progress=None)
    again, _, _ = turn(later, NOW + 1)
    assert again.attempts[-1].terminations == list(OOM)
    once, _, _ = turn(replace(later, job=replace(base.job, status=again)), NOW + 2)
    assert once.attempts == again.attempts


def test_delays_double_up_to_their_bound() -> None:
    assert [retries.delay(n) for n in (1, 2, 3, 4, 7, 8, 100)] == [5, 10, 20, 40, 300, 300, 300]


def half(placed: int, seconds_ago: float, *, started_ago: float = 9000, **sections: Any) -> Observation:
    """A job of whose pods some have nodes since a while."""
    found = [
        pod(role, n, phase="Pending", ready=False, placed=NOW - seconds_ago)
        if i < placed
        else pod(role, n, phase="Pending", ready=False, scheduled=False, unscheduled="no room")
        for i, (role, n) in enumerate((("head", 0), ("worker", 0), ("worker", 1), ("worker", 2)))
    ]
    status = {**started(started_ago), "cluster": {"name": CLUSTER, "uid": "c"}}
    return seen(job=job(status, **{"recovery": LIMIT, **sections}), pods=tuple(found))


def test_a_job_that_is_half_placed_for_ten_minutes_gives_its_nodes_back() -> None:
    status, _, _ = turn(half(2, 601), NOW)
    after = retries.jitter(UID, 1)
    assert status.phase is Phase.RECOVERING
    assert status.attempts[-1].message == (
        f"only 2 of 4 pods found nodes in 600 s: all are released, and tried again after {after:.0f} s"
    )
    assert (status.failures, status.interruptions) == (0, 1)
    assert status.next_retry_time == rfc3339(NOW + after)


GANG = {"gpus": 3, "gpusPerNode": 1, "cpuOnly": True, "schedulerName": "volcano"}


@pytest.mark.parametrize(
    "observation",
    [half(2, 599), half(0, 0), half(4, 9000), half(2, 601, cluster=GANG), half(2, 9000, started_ago=599)],
    ids=["not for ten minutes", "no pod has a node", "all have one", "a scheduler of gangs", "a clock that is behind"],
)  # fmt: skip
def test_it_keeps_them(observation: Observation) -> None:
    assert turn(observation, NOW)[0].phase is Phase.PROVISIONING


def test_jitter_differs_from_job_to_job_and_from_attempt_to_attempt() -> None:
    found = {retries.jitter(f"{UID}{n}", 1) for n in range(50)} | {retries.jitter(UID, n) for n in range(50)}
    assert len(found) > 60
    assert min(found) >= 60
    assert max(found) <= 300
    assert retries.jitter(UID, 3) == retries.jitter(UID, 3)


def test_a_pod_on_a_dead_node_does_not_hold_up_the_next_attempt() -> None:
    status, _, _ = turn(FAULTS["head lost"][0](at("Training")), NOW)
    base = replace(at("Training"), job=replace(at("Training").job, status=status), cluster=None, progress=None)
    stuck = replace(base, pods=(pod("worker", 1, deleting=True, node="n1", due=NOW - 60),))
    assert turn(stuck, NOW + 60)[2] is None
    assert turn(replace(stuck, dead_nodes=frozenset({"n2"})), NOW + 60)[2] is None
    assert turn(replace(stuck, dead_nodes=frozenset({"n1"})), NOW + 60)[2] is Begin.NEW_CLUSTER


def test_time_in_suspension_does_not_count() -> None:
    active = job({**started(100), "activeSeconds": 40, "activeSince": rfc3339(NOW - 50)}, activeDeadlineSeconds=91)
    decision = decide(seen(job=active), NOW)
    assert (decision.phase, decision.wake) == (Phase.PROVISIONING, 1.0)
    assert decide(seen(job=active), NOW + 1).reason == "DeadlineExceeded"
    resting = job({**started(100), "phase": "Suspended", "activeSeconds": 90}, activeDeadlineSeconds=91, suspend=True)
    assert decide(Observation(job=resting), NOW + 9000).phase is Phase.SUSPENDED
