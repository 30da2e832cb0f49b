"""Rules for jobs that are over."""

from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.decide.recovering import release_action
from simplerl_operator.observe.observation import Observation


def deleted(seen: Observation, now: float) -> Decision | None:
    """A job that is being deleted, whoever set that and whatever finalizers others hold, releases its pods."""
    return Decision(action=release_action(seen)) if seen.job.deleting else None


def finished(seen: Observation, now: float) -> Decision | None:
    """A job that succeeded or failed releases its pods after its status was written, or after
    spec.cluster.keepAfterFailureSeconds; the object itself goes after spec.ttlSecondsAfterFinished."""
    job = seen.job
    if job.status.completion_time is None:
        return None
    since = now - clock.seconds(job.status.completion_time)
    waits: list[float] = []
    keep = job.spec.cluster.keep_after_failure_seconds if job.spec is not None else None
    if (action := release_action(seen)) is not Action.NOTHING:
        if job.status.phase is not Phase.FAILED or since >= (keep or 0):
            return Decision(action=action, wake=1.0)
        waits.append((keep or 0) - since)
    ttl = job.spec.ttl_seconds_after_finished if job.spec is not None else None
    if ttl is not None:
        if since >= ttl:
            return Decision(action=Action.DELETE_JOB)
        waits.append(ttl - since)
    return Decision(wake=max(1.0, min(waits)) if waits else None)
