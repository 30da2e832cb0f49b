"""The end of an attempt before its time: another one follows, or the job has failed."""

import json

from simplerl_api import adaptations
from simplerl_api.spec.recovery import OnOutOfMemory
from simplerl_api.status import Adaptation, Phase
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
    if (change := _adaptation(seen, reason)) is not None:
        was = "" if change.before is None else f" in place of {change.before}"
        return Decision(
            phase=Phase.RECOVERING,
            reason=reason,
            message=f"{message}; the next attempt has {change.path} {json.dumps(change.to)}{was}",
            cluster_ready=False,
            log=log(seen),
            ended=Ended(charged=False, counted=False, retry=now + retries.FIRST_DELAY),
            adaptation=change,
            wake=0.0,
        )
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


def _adaptation(seen: Observation, reason: str) -> Adaptation | None:
    """What the next attempt does differently after one that ran out of memory."""
    spec, plan, before = seen.job.spec, seen.job.plan, seen.job.status.adaptations
    if clocks.recovery(seen).on_out_of_memory is not OnOutOfMemory.ADAPT or len(before) >= adaptations.MOST:
        return None
    return adaptations.following(spec, plan, reason, seen.job.attempt + 1) if spec is not None and plan else None


def log(seen: Observation) -> tuple[str, ...]:
    """The driver's last lines."""
    lines: tuple[str, ...] = ()
    if seen.progress is not None and seen.progress.log:
        lines = tuple(seen.progress.log)
    if seen.head is not None and seen.head.ray_job is not None:
        final = seen.head.ray_job.final
        lines = (tuple(final.log) if final is not None else ()) or seen.head.ray_job.log or lines
    return lines
