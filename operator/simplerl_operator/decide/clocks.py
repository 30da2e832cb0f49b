"""The clocks of an attempt. They stand in the status, or in what the driver says: never in the operator's memory."""

from simplerl_api.progress import RunState
from simplerl_api.spec.recovery import Recovery
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.observe.observation import Observation


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
    since this operator started counts from when it fell silent."""
    times = [started(seen)]
    if seen.job.status.last_progress_time is not None:
        times.append(clock.seconds(seen.job.status.last_progress_time))
    if seen.progress is not None:
        times.append(seen.progress.last_progress)
    else:
        times.append(now if seen.silent_since is None else seen.silent_since)
    return max(times)


def until_deadline(seen: Observation, now: float) -> float:
    return max(1.0, started(seen) + recovery(seen).startup_deadline_seconds - now)
