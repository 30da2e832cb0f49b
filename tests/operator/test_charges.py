"""Which failures count against spec.recovery.backoffLimit, and what becomes of the pods between two attempts."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.operator.observations import NOW, all_pods, job, pod, progress, ray_cluster, seen, submitted

from simplerl_api.status import Phase, Status
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.decision import Action, Begin
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe.observation import Observation

LIMIT = 2


@dataclass(frozen=True)
class Row:
    """A job with failures behind it, whose driver says something."""

    sentence: str
    failures: int
    at: int | None
    """The step that was saved at the last of them."""
    saved: int | None
    """The newest checkpoint, as the driver tells it."""
    state: str
    phase: Phase
    counted: int
    message: str = "rank 1 ended"


ROWS = [
    Row("the first failure counts", 0, None, 4, "Failed", Phase.RECOVERING, 1),
    Row("one more at the same checkpoint counts with it", 1, 4, 4, "Failed", Phase.RECOVERING, 2),
    Row("an older checkpoint is no progress", 1, 4, 2, "Failed", Phase.RECOVERING, 2),
    Row("no checkpoint at all is no progress", 1, None, None, "Failed", Phase.RECOVERING, 2),
    Row(
        "the last one that may be is the end of a job that does not get further", 2, 4, 4, "Failed", Phase.FAILED, 3,
        "rank 1 ended (failure 3; spec.recovery.backoffLimit is 2)",
    ),
    Row("after a later checkpoint the count begins anew", 2, 4, 8, "Failed", Phase.RECOVERING, 1),
    Row("the first checkpoint of all is progress", 2, None, 1, "Failed", Phase.RECOVERING, 1),
    Row("a run that gets further is forgiven at once", 2, 4, 8, "Training", Phase.TRAINING, 0),
    Row("a run that does not is not", 2, 4, 4, "Training", Phase.TRAINING, 2),
    Row(
        "a drain that saved a later step is progress", 2, 4, 5, "Drained", Phase.RECOVERING, 0,
        "the driver was asked to drain, and has done so",
    ),
]  # fmt: skip


def said(row: Row) -> Observation:
    checkpoint = {"step": 4, "path": "/c/4"}
    status = submitted(phase="Training", failures=row.failures, failureStep=row.at, checkpoint=checkpoint)
    if row.at is None:
        del status["failureStep"], status["checkpoint"]
    failure = {"failure": {"reason": "LostRank", "message": "rank 1 ended"}} if row.state == "Failed" else {}
    if row.saved is not None:
        failure["checkpoint"] = {"step": row.saved, "path": f"/c/{row.saved}"}
    found = job(status, recovery={"backoffLimit": LIMIT})
    return seen(job=found, progress=progress(state=row.state, **failure))


@pytest.mark.parametrize("row", ROWS, ids=[row.sentence for row in ROWS])
def test_failures_count_since_the_run_last_got_further(row: Row) -> None:
    observation = said(row)
    decision = decide(observation, NOW)
    status = compose(observation, decision, NOW)
    assert (status.phase, status.failures) == (row.phase, row.counted)
    if row.state != "Training":
        assert status.attempts[-1].message == row.message
    reached = max(row.at or 0, row.saved or 0)
    assert status.failure_step == (reached if row.state == "Failed" else row.at if row.counted else None)


MEMORY = [
    pytest.param(
        "TrainingOutOfMemory", {}, Phase.RECOVERING, 0,
        "rank 1 ran out of memory; the next attempt has training.maxTokensPerMicroBatch 2048 in place of 4096",
        id="another attempt holds less at once, and nothing is charged",
    ),
    pytest.param(
        "RolloutOutOfMemory", {"backoffLimit": 0}, Phase.RECOVERING, 0,
        "rank 1 ran out of memory; the next attempt has rollout.maxNumBatchedTokens 4096 in place of 8192",
        id="also where none may fail",
    ),
    pytest.param(
        "TrainingOutOfMemory", {"onOutOfMemory": "Retry", "backoffLimit": 1}, Phase.RECOVERING, 1,
        "rank 1 ran out of memory", id="as it is, where the job says so",
    ),
    pytest.param(
        "LostRank", {"backoffLimit": 1}, Phase.RECOVERING, 1, "rank 1 ran out of memory",
        id="another end adapts nothing",
    ),
]  # fmt: skip


def out_of_memory(reason: str, recovery: dict[str, Any], changes: list[dict[str, Any]]) -> Observation:
    found = job(submitted(phase="Training", adaptations=changes), recovery=recovery)
    failure = {"reason": reason, "message": "rank 1 ran out of memory"}
    return seen(job=found, progress=progress(state="Failed", failure=failure))


@pytest.mark.parametrize(("reason", "recovery", "phase", "failures", "message"), MEMORY)
def test_an_attempt_that_ran_out_of_memory(
    reason: str, recovery: dict[str, Any], phase: Phase, failures: int, message: str
) -> None:
    observation = out_of_memory(reason, recovery, [])
    status = compose(observation, decide(observation, NOW), NOW)
    assert (status.phase, status.failures, status.interruptions) == (phase, failures, 0)
    assert status.attempts[-1].message == message
    assert [a.attempt for a in status.adaptations] == ([2] if "the next attempt has" in message else [])


def test_changes_add_up_until_nothing_is_left_to_change() -> None:
    changes: list[dict[str, Any]] = []
    said: list[str] = []
    while True:
        observation = out_of_memory("TrainingOutOfMemory", {"backoffLimit": 0}, changes)
        status = compose(observation, decide(observation, NOW), NOW)
        if status.phase is Phase.FAILED:
            break
        changes = [a.document() for a in status.adaptations]
        said.append(f"{changes[-1]['path']} {changes[-1].get('from')} {changes[-1]['to']}")
    assert said == [
        "training.maxTokensPerMicroBatch 4096 2048", "training.maxTokensPerMicroBatch 2048 1032",
        "training.gradientCheckpointing None True",
    ]  # fmt: skip
    assert status.failure is not None
    assert (status.failure.reason, status.failure.message) == ("TrainingOutOfMemory", "rank 1 ran out of memory")
    assert len(status.adaptations) == len(said), "what was changed stays to be seen"


def test_a_run_of_weeks_outlives_any_number_of_rare_failures() -> None:
    status = Status.model_validate(submitted(phase="Training"))
    for number in range(1, 40):
        assert status.cluster is not None
        checkpoint = {"step": 10 * number, "path": "/c"}
        ends = progress(
            state="Failed", failure={"reason": "LostRank", "message": "rank 1 ended"}, checkpoint=checkpoint
        )
        found = job(status.document(), recovery={"backoffLimit": LIMIT})
        observation = seen(job=found, progress=ends.model_copy(update={"submission_id": found.submission_id}))
        status = compose(observation, decide(observation, NOW), NOW)
        assert (status.phase, status.failures, status.next_retry_time) == (Phase.RECOVERING, 1, rfc3339(NOW + 5))
        between = seen(job=job(status.document(), recovery={"backoffLimit": LIMIT}))
        begins = decide(between, NOW + 6)
        assert begins.begin is Begin.SAME_CLUSTER
        status = compose(between, begins, NOW + 6).model_copy(update={"phase": Phase.TRAINING})
        status = status.model_copy(update={"cluster": Status.model_validate(submitted()).cluster})


WAITS = rfc3339(NOW + 280)
ENDED = {"number": 1, "reason": "LostRank", "message": "rank 1 ended"}


def between(retry: str = WAITS, reason: str = "LostRank", **fields: Any) -> Observation:
    """A job whose driver has ended, seen before or after the next attempt may begin."""
    status = submitted(phase="Recovering", nextRetryTime=retry, attempts=[{**ENDED, "reason": reason}])
    return seen(job=job(status, recovery={"backoffLimit": 9}), **fields)


def one(**fields: Any) -> Any:
    return (*all_pods()[:3], pod("worker", 2, **fields))


DUE = rfc3339(NOW)
KEPT: list[tuple[str, Observation, Action, Begin | None]] = [
    ("pods that are well are kept however long the back-off is", between(), Action.NOTHING, None),
    ("also while a readiness probe misses a beat", between(pods=one(ready=False)), Action.NOTHING, None),
    ("a pod that ended meanwhile ends that", between(pods=one(phase="Failed")), Action.RELEASE, None),
    ("and one that is being deleted", between(pods=one(deleting=True)), Action.RELEASE, None),
    ("and one that was replaced", between(pods=one(uid="another")), Action.RELEASE, None),
    ("and Kueue", between(cluster=ray_cluster(suspended=True)), Action.RELEASE, None),
    ("pods of which one was lost are not kept", between(reason="WorkerLost"), Action.RELEASE, None),
    ("when its time has come the attempt begins in them", between(DUE), Action.NOTHING, Begin.SAME_CLUSTER),
    ("but not in pods that are not ready then", between(DUE, pods=one(ready=False)), Action.RELEASE, None),
]


@pytest.mark.parametrize(("observation", "action", "begin"), [k[1:] for k in KEPT], ids=[k[0] for k in KEPT])
def test_pods_wait_for_the_next_attempt(observation: Observation, action: Action, begin: Begin | None) -> None:
    decision = decide(observation, NOW)
    assert (decision.action, decision.begin) == (action, begin)
    assert decision.phase is (Phase.STARTING if begin else Phase.RECOVERING)


def test_pods_that_are_kept_are_looked_at_again_when_their_time_comes() -> None:
    assert decide(between(), NOW).wake == 280.0
    assert decide(replace(between(), cluster=None, pods=()), NOW).wake == 280.0
