"""Rules by which nothing waits for ever."""

from dataclasses import replace

from simplerl_operator.decide import clocks, retries, trouble
from simplerl_operator.decide.decision import Decision
from simplerl_operator.decide.failure import fail, lose
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation


def active_deadline(seen: Observation, now: float) -> Decision | None:
    """The whole job, without the time in which it was queued or suspended, within spec.activeDeadlineSeconds."""
    limit = seen.job.spec.active_deadline_seconds if seen.job.spec is not None else None
    if limit is None or clocks.active(seen, now) < limit:
        return None
    return fail(
        seen,
        Reason.DEADLINE_EXCEEDED,
        f"the job was active for {limit} s (spec.activeDeadlineSeconds; queued and suspended time is not counted)",
    )


def in_time(seen: Observation, decision: Decision, now: float) -> Decision:
    """The decision, with a next look when the whole job's time is over, whatever it waits for."""
    limit = seen.job.spec.active_deadline_seconds if seen.job.spec is not None else None
    if limit is None or decision.phase is None or decision.over or seen.job.status.active_since is None:
        return decision
    left = max(1.0, limit - clocks.active(seen, now))
    return replace(decision, wake=left if decision.wake is None else min(decision.wake, left))


def scheduling_deadline(seen: Observation, now: float) -> Decision | None:
    """All pods must have a node within spec.recovery.schedulingDeadlineSeconds; unset, they wait."""
    limit = clocks.recovery(seen).scheduling_deadline_seconds
    if limit is None or seen.job.submitted or seen.scheduled or now < clocks.started(seen) + limit:
        return None
    return fail(
        seen,
        Reason.SCHEDULING_DEADLINE,
        f"not all pods had a node within {limit} s (spec.recovery.schedulingDeadlineSeconds): {_why(seen)}",
    )


def half_placed(seen: Observation, now: float) -> Decision | None:
    """Some pods hold nodes, the others find none: two such jobs can keep each other waiting for ever. A scheduler of
    gangs places all or none, and is left alone."""
    since = clocks.half_placed_since(seen)
    if since is None or now < since + clocks.HALF_PLACED_SECONDS:
        return None
    after = retries.jitter(seen.job.uid, seen.job.attempt)
    placed = sum(pod.scheduled for pod in seen.pods)
    return lose(
        seen,
        now,
        Reason.HALF_PLACED,
        f"only {placed} of {seen.wanted_pods} pods found nodes in {clocks.HALF_PLACED_SECONDS:.0f} s: all are "
        f"released, and tried again after {after:.0f} s",
        charged=False,
        after=after,
    )


def startup_deadline(seen: Observation, now: float) -> Decision | None:
    """Once all pods have nodes, the first step begins within spec.recovery.startupDeadlineSeconds."""
    since = clocks.starting_since(seen)
    limit = clocks.recovery(seen).startup_deadline_seconds
    if since is None or clocks.training(seen) or now < since + limit:
        return None
    return lose(
        seen,
        now,
        Reason.STARTUP_DEADLINE,
        f"training did not begin within {limit} s (spec.recovery.startupDeadlineSeconds): {_why(seen)}",
    )


def stalled(seen: Observation, now: float) -> Decision | None:
    """While training, something must move within spec.recovery.stallTimeoutSeconds."""
    limit = clocks.recovery(seen).stall_timeout_seconds
    if not clocks.training(seen) or now < clocks.last_progress(seen, now) + limit:
        return None
    activity = f" in {seen.progress.activity}" if seen.progress and seen.progress.activity else ""
    message = f"nothing moved{activity} for {limit} s (spec.recovery.stallTimeoutSeconds)"
    if why := trouble.too_few_engines(seen):
        return lose(seen, now, Reason.INTERRUPTED, f"{message}; {why}", charged=False)
    return lose(seen, now, Reason.STALLED, message)


def _why(seen: Observation) -> str:
    found, ready = trouble.of(seen), seen.job.condition("Ready")
    return found[1] if found else seen.refusal or (ready.message if ready else "") or "the pods are not ready"
