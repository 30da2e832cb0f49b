"""The clocks of an attempt. They stand in the status, or in what the driver says: never in the operator's memory."""

from simplerl_api.progress import RunState
from simplerl_api.spec.recovery import Recovery
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.observe.observation import Observation

HALF_PLACED_SECONDS = 600.0
NO_DEADLINE = 3600.0
"""Seconds until the next look where no deadline runs."""


def recovery(seen: Observation) -> Recovery:
    return seen.job.spec.recovery if seen.job.spec is not None else Recovery()


def training(seen: Observation) -> bool:
    if seen.job.status.phase is Phase.TRAINING:
        return True
    return seen.job.submitted and seen.progress is not None and seen.progress.state is RunState.TRAINING


def started(seen: Observation) -> float:
    """When the attempt's pods could first be made: time in a queue does not count."""
    started = seen.job.status.attempt_start_time or seen.job.status.start_time
    assert started is not None, "an attempt has a start"
    admitted = seen.job.status.admitted_time
    return max(clock.seconds(started), clock.seconds(admitted) if admitted is not None else 0.0)


def last_progress(seen: Observation, now: float) -> float:
    """When anything last moved, the latest of what the driver and the status say; a driver that has not been heard
    since this operator started counts from when it fell silent: the status, where a time alone causes no write, may be
    old while it moves. All of it by the operator's clock."""
    times = [started(seen)]
    if seen.job.status.last_progress_time is not None:
        times.append(clock.seconds(seen.job.status.last_progress_time))
    if seen.progress is not None:
        times.append(seen.progress.last_progress)
    else:
        times.append(now if seen.silent_since is None else seen.silent_since)
    return min(now, max(times))


def active(seen: Observation, now: float) -> float:
    """Seconds for which the job was active, up to now."""
    since = seen.job.status.active_since
    return seen.job.status.active_seconds + (0.0 if since is None else max(0.0, now - clock.seconds(since)))


def starting_since(seen: Observation) -> float | None:
    """From when the startup deadline counts: all pods have nodes. A RayCluster of which KubeRay makes nothing at all
    waits for no node, and counts from the start."""
    if seen.job.status.scheduled_time is not None:
        return max(started(seen), clock.seconds(seen.job.status.scheduled_time))
    if seen.job.submitted:
        return started(seen)
    if seen.scheduled:
        return None  # it counts from the write that this look leads to
    makes_none = seen.cluster is not None and not seen.pods and seen.cluster.replica_failure is None
    return started(seen) if seen.cluster is None or makes_none else None


def half_placed_since(seen: Observation) -> float | None:
    """Since when some pods hold nodes and the others find none; None where that is not so, or another scheduler or a
    queue sees to it."""
    spec = seen.job.spec
    if seen.job.submitted or seen.scheduled or spec is None or spec.cluster.scheduler_name is not None:
        return None
    if seen.job.status.admitted_time is not None:
        return None
    held = [pod.placed for pod in seen.pods if pod.placed is not None]
    waits = any(pod.unscheduled for pod in seen.pods)
    # the scheduler's clock is taken for the API server's; where it is behind, the attempt's start bounds the difference
    return max(*held, started(seen)) if held and waits else None


def until_deadline(seen: Observation, now: float) -> float:
    """Seconds to the next of the deadlines before the first step."""
    limits = recovery(seen)
    due = []
    if (since := starting_since(seen)) is not None:
        due.append(since + limits.startup_deadline_seconds)
    if limits.scheduling_deadline_seconds is not None and not seen.scheduled and not seen.job.submitted:
        due.append(started(seen) + limits.scheduling_deadline_seconds)
    if (since := half_placed_since(seen)) is not None:
        due.append(since + HALF_PLACED_SECONDS)
    return max(1.0, min(due) - now) if due else NO_DEADLINE
