"""What a job has used when its attempts are over."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.observations import NOW, pod, progress, seen, started, submitted
from tests.operator.observations import job as make_job

from simplerl_api.status import Phase, Status
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe.observation import Observation

GPUS = {"gpus": 3, "gpusPerNode": 1}
DONE = progress(state="Succeeded", step=60)
FAILED = progress(state="Failed", failure={"reason": "LostRank", "message": "rank 1 ended"})


def after(status: dict[str, Any], cluster: dict[str, Any] = GPUS, **fields: Any) -> Status:
    spec = {"cluster": cluster, "recovery": {"backoffLimit": 1}}
    observation = seen(job=make_job(status, **spec), **fields)
    return compose(observation, decide(observation, NOW), NOW)


SINCE = {"scheduledTime": rfc3339(NOW - 100)}
USED: list[tuple[str, Status, Phase, int]] = [
    ("a run that is done", after(submitted(130, **SINCE), progress=DONE), Phase.SUCCEEDED, 300),
    ("one that failed", after(submitted(130, **SINCE), progress=FAILED), Phase.RECOVERING, 300),
    ("with what earlier attempts used", after(submitted(**SINCE, gpuSeconds=50), progress=DONE), Phase.SUCCEEDED, 350),
    ("one that still runs", after(submitted(130, **SINCE, gpuSeconds=50)), Phase.STARTING, 50),
    (
        "pods that never all had nodes",
        after(started(9000), pods=(pod("head", phase="Failed"),)),
        Phase.RECOVERING,
        0,
    ),
    ("no GPUs at all", after(submitted(**SINCE), {**GPUS, "cpuOnly": True}, progress=DONE), Phase.SUCCEEDED, 0),
]


@pytest.mark.parametrize(("status", "phase", "used"), [u[1:] for u in USED], ids=[u[0] for u in USED])
def test_gpu_seconds(status: Status, phase: Phase, used: int) -> None:
    assert (status.phase, status.gpu_seconds) == (phase, used)


def test_an_attempt_is_counted_once() -> None:
    status = after(submitted(130, **SINCE), progress=FAILED)
    between: Observation = seen(job=make_job(status.document(), cluster=GPUS, recovery={"backoffLimit": 1}))
    for passes in (1, 2, 60):
        seen_again = replace(between, job=replace(between.job, status=status))
        status = compose(seen_again, decide(seen_again, NOW + passes), NOW + passes)
        assert status.gpu_seconds == 300
    assert (status.phase, status.attempt, status.scheduled_time) == (Phase.STARTING, 2, rfc3339(NOW + 60))
