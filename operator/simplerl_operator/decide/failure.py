"""The end of an attempt before its time: another one follows, or the job has failed."""

from simplerl_api.status import Phase
from simplerl_operator.decide import charges, clocks, retries
from simplerl_operator.decide.decision import Decision, Ended
from simplerl_operator.observe.observation import Observation


def fail(seen: Observation, reason: str, message: str) -> Decision:
    """The job has failed for a reason, with the driver's last lines as far as they are known."""
    return Decision(
        phase=Phase.FAILED,
        reason=reason,
        message=message,
        cluster_ready=False,
        log=log(seen),
        ended=Ended(charged=True),
    )


def lose(
    seen: Observation, now: float, reason: str, message: str, *, charged: bool = True, after: float | None = None
) -> Decision:
    """The attempt ends. Another one follows unless the reason is final, or too many were charged already; `after` so
    many seconds, or the usual ones."""
    if reason in retries.FINAL:
        return fail(seen, reason, message)
    failures, limit = charges.before(seen) + charged, clocks.recovery(seen).backoff_limit
    if charged and failures > limit:
        tried = f" (failure {failures}; spec.recovery.backoffLimit is {limit})" if limit else ""
        return fail(seen, reason, message + tried)
    if after is None:
        after = retries.delay(failures) if charged else retries.INTERRUPTED_DELAY
    return Decision(
        phase=Phase.RECOVERING,
        reason=reason,
        message=message,
        cluster_ready=False,
        log=log(seen),
        ended=Ended(charged=charged, retry=now + after),
        wake=0.0,
    )


def log(seen: Observation) -> tuple[str, ...]:
    """The driver's last lines."""
    lines: tuple[str, ...] = ()
    if seen.progress is not None and seen.progress.log:
        lines = tuple(seen.progress.log)
    if seen.head is not None and seen.head.ray_job is not None:
        final = seen.head.ray_job.final
        lines = (tuple(final.log) if final is not None else ()) or seen.head.ray_job.log or lines
    return lines
