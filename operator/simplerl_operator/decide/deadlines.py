"""Rules by which nothing waits for ever."""

from simplerl_operator.decide import clocks, trouble
from simplerl_operator.decide.decision import Decision
from simplerl_operator.decide.failure import fail
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation


def startup_deadline(seen: Observation, now: float) -> Decision | None:
    """Before the first step, nothing waits longer than spec.recovery.startupDeadlineSeconds."""
    limit = clocks.recovery(seen).startup_deadline_seconds
    if clocks.training(seen) or now < clocks.started(seen) + limit:
        return None
    found = trouble.of(seen)
    ready = seen.job.condition("Ready")
    why = found[1] if found else seen.refusal or (ready.message if ready else "") or "the pods are not ready"
    return fail(
        seen,
        Reason.STARTUP_DEADLINE,
        f"training did not begin within {limit} s (spec.recovery.startupDeadlineSeconds): {why}",
    )


def stalled(seen: Observation, now: float) -> Decision | None:
    """While training, something must move within spec.recovery.stallTimeoutSeconds."""
    limit = clocks.recovery(seen).stall_timeout_seconds
    if not clocks.training(seen) or now < clocks.last_progress(seen, now) + limit:
        return None
    activity = f" in {seen.progress.activity}" if seen.progress and seen.progress.activity else ""
    return fail(seen, Reason.STALLED, f"nothing moved{activity} for {limit} s (spec.recovery.stallTimeoutSeconds)")
