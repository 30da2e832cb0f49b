"""Rules of spec.suspend: drain, remove the pods, rest, and go on with another attempt. Once begun it is carried
through."""

from simplerl_api.progress import RunState
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide import clocks, recovering
from simplerl_operator.decide.decision import Action, Begin, Decision, Ended
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation

_ASK_AGAIN = 5.0
"""Seconds between two requests to drain."""
_LOOK_AGAIN = 10.0


def before_start(seen: Observation, now: float) -> Decision | None:
    """A job that is suspended before its start makes nothing."""
    if seen.job.started or seen.job.spec is None or not seen.job.spec.suspend:
        return None
    return _rest("spec.suspend is true: nothing has been made")


def suspend(seen: Observation, now: float) -> Decision | None:
    """The driver saves its last finished step, within spec.recovery.drainSeconds; then the pods go."""
    status, asked = seen.job.status, seen.job.spec is not None and seen.job.spec.suspend
    if status.phase is Phase.SUSPENDED or not (asked or status.phase is Phase.SUSPENDING):
        return None
    began = now
    if status.phase is Phase.SUSPENDING and status.suspend_time is not None:
        began = clock.seconds(status.suspend_time)
    left = began + clocks.recovery(seen).drain_seconds - now
    if _drains(seen) and left > 0:
        message = "the driver saves its last finished step"
        return _going(seen, Reason.DRAINING, message, Action.DRAIN, min(_ASK_AGAIN, left))
    release = recovering.release_action(seen)
    if seen.cluster is not None and seen.cluster.owner_uid == seen.job.uid:
        return _going(seen, Reason.REMOVING_PODS, "the pods are being removed", release, _LOOK_AGAIN)
    if seen.staying:
        message = f"{seen.staying[0].role} pod {seen.staying[0].name} is still there"
        return _going(seen, Reason.REMOVING_PODS, message, Action.NOTHING, _LOOK_AGAIN)
    durable = seen.job.plan is not None and seen.job.plan.durable
    saved = status.checkpoint.step if status.checkpoint is not None and durable else None
    at = "no step is saved" if saved is None else f"step {saved} is saved"
    ended = None if recovering.ended(seen) else Ended(charged=False, counted=False)
    return _rest(f"spec.suspend is true: there are no pods, {at}", ended)


def rest(seen: Observation, now: float) -> Decision | None:
    """While it is suspended nothing is done; then another attempt begins, of spec.cluster as it is now."""
    if seen.job.status.phase is not Phase.SUSPENDED or not seen.job.started:
        return None
    if seen.job.spec is None or seen.job.faults:
        return Decision(
            phase=Phase.SUSPENDED,
            reason=Reason.INVALID_SPEC,
            message="; ".join(seen.job.faults),
            refused=True,
            cluster_ready=False,
        )
    if seen.job.spec.suspend:
        ready = seen.job.condition("Ready")
        said = ready.message if ready is not None and ready.reason == Reason.SUSPENDED else ""
        return _rest(said or "spec.suspend is true: there are no pods")
    return recovering.begin(seen, Begin.NEW_CLUSTER)


def _drains(seen: Observation) -> bool:
    """Whether there is a driver that may still save something."""
    if not seen.job.submitted or recovering.ended(seen) or seen.head_pod is None or seen.head_pod.ended:
        return False
    last = seen.last_document
    if last is not None and last.finished:
        return False
    ray_job = seen.head.ray_job if seen.head is not None else None
    if ray_job is not None and ray_job.state.over:
        return False
    return last is None or last.state in (RunState.STARTING, RunState.TRAINING)


def _going(seen: Observation, reason: Reason, message: str, action: Action, wake: float) -> Decision:
    # what the driver says while it drains belongs to the job's figures
    return Decision(
        action=action,
        phase=Phase.SUSPENDING,
        reason=reason,
        message=message,
        cluster_ready=False,
        submitted=seen.job.submitted,
        wake=max(1.0, wake),
    )


def _rest(message: str, ended: Ended | None = None) -> Decision:
    return Decision(phase=Phase.SUSPENDED, reason=Reason.SUSPENDED, message=message, cluster_ready=False, ended=ended)
