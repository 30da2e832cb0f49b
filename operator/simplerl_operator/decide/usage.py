"""What a job uses: its own time, and that of its GPUs. Both are written with what happens to the job, never alone."""

from typing import Any

from simplerl_api.status import EnginePodsStatus, Phase, Status
from simplerl_operator import clock
from simplerl_operator.decide.decision import Decision
from simplerl_operator.observe.observation import Observation

_RESTING = frozenset({Phase.QUEUED, Phase.SUSPENDED, Phase.SUCCEEDED, Phase.FAILED})
"""Phases in which the job's own clock stands."""


def activity(before: Status, decision: Decision, now: float) -> dict[str, Any]:
    """The job's own clock, which stands while it is queued or suspended."""
    runs = decision.begin is not None or (before.start_time is not None and decision.phase not in _RESTING)
    if runs and before.active_since is None:
        return {"active_since": clock.rfc3339(now)}
    if not runs and before.active_since is not None:
        return {"active_since": None, "active_seconds": before.active_seconds + _since(before.active_since, now)}
    return {}


def gpu_seconds(seen: Observation, now: float) -> int:
    """GPU-seconds of the attempt that ends: its GPUs times the seconds for which all its pods had nodes; those that
    come and go count for themselves."""
    spec, plan, scheduled = seen.job.spec, seen.job.plan, seen.job.status.scheduled_time
    if plan is None or scheduled is None or (spec is not None and spec.cluster.cpu_only):
        return 0
    if not seen.job.elastic:
        return plan.gpus * _since(scheduled, now)
    cluster = seen.job.status.cluster
    passing = cluster.engine_pods if cluster is not None else None
    engines = 0 if passing is None else passing.seconds + passing.number * _since(passing.since, now)
    return plan.gpus_per_node * (plan.training_nodes * _since(scheduled, now) + engines)


def engine_pods(seen: Observation, now: float) -> EnginePodsStatus | None:
    """The pods that come and go, once the attempt's time counts: their seconds, up to when their number changed."""
    before = seen.job.status.cluster.engine_pods if seen.job.status.cluster is not None else None
    counts = seen.scheduled or seen.job.submitted
    if not seen.job.elastic or not counts:
        return None
    number = sum(pod.scheduled and not pod.ended for pod in seen.engine_pods)
    if before is None:
        return EnginePodsStatus(number=number, since=clock.rfc3339(now))
    if number == before.number:
        return before
    seconds = before.seconds + before.number * _since(before.since, now)
    return EnginePodsStatus(number=number, since=clock.rfc3339(now), seconds=seconds)


def _since(time: str, now: float) -> int:
    return max(0, int(now) - int(clock.seconds(time)))
