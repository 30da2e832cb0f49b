"""Rules between two attempts, which never overlap."""

from simplerl_api.status import AttemptStatus, Phase
from simplerl_operator import clock
from simplerl_operator.decide import retries
from simplerl_operator.decide.decision import Action, Begin, Decision
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation

_LOOK_AGAIN = 10.0
"""Seconds between two looks at pods that do not go, whose nodes may have died."""


def recovering(seen: Observation, now: float) -> Decision | None:
    """The old pods are removed, or kept where they are well; the next attempt begins after its back-off and alone."""
    if seen.job.status.phase is not Phase.RECOVERING:
        return None
    last, retry = last_attempt(seen), seen.job.status.next_retry_time
    left = max(0.0, clock.seconds(retry) - now) if retry is not None else 0.0
    stays = _reusable(seen, last) and (left > 0 or seen.ready)
    message = f"attempt {last.number} ended: {last.message}"
    releases = release_action(seen) if not stays else Action.NOTHING
    if left > 0 or releases is not Action.NOTHING:
        return Decision(
            action=releases,
            phase=Phase.RECOVERING,
            reason=last.reason,
            message=message,
            cluster_ready=False,
            wake=max(1.0, left),
        )
    if stays:
        return begin(seen, Begin.SAME_CLUSTER)
    if (waits := _overlap(seen)) is not None:
        return Decision(
            phase=Phase.RECOVERING,
            reason=Reason.WAITING_FOR_OLD_PODS,
            message=f"{message}; the next one waits for {waits} to go",
            cluster_ready=False,
            wake=_LOOK_AGAIN,
        )
    return begin(seen, Begin.NEW_CLUSTER)


def begin(seen: Observation, how: Begin) -> Decision:
    """The next attempt begins with a write to the status."""
    number = seen.job.attempt + 1
    if how is Begin.SAME_CLUSTER:
        return Decision(
            phase=Phase.STARTING,
            reason=Reason.NEXT_ATTEMPT,
            message=f"attempt {number} begins in RayCluster {seen.job.cluster_name}, whose pods are well",
            cluster_ready=True,
            begin=how,
            wake=0.0,
        )
    return Decision(
        phase=Phase.PROVISIONING,
        reason=Reason.NEXT_ATTEMPT,
        message=f"attempt {number} begins in a new RayCluster",
        cluster_ready=False,
        begin=how,
        wake=0.0,
    )


def ended(seen: Observation) -> bool:
    """Whether the attempt has ended already."""
    attempts = seen.job.status.attempts
    return bool(attempts) and attempts[-1].number == seen.job.attempt


def last_attempt(seen: Observation) -> AttemptStatus:
    """The attempt that ended last."""
    attempts = seen.job.status.attempts
    assert attempts, "a job between two attempts has one that ended"
    return attempts[-1]


def release_action(seen: Observation) -> Action:
    """Deletes the attempt's RayCluster where it is there and ours."""
    ours = seen.cluster is not None and seen.cluster.owner_uid == seen.job.uid and not seen.cluster.deleting
    return Action.RELEASE if ours else Action.NOTHING


def _overlap(seen: Observation) -> str | None:
    """What is left of earlier attempts."""
    if seen.staying:
        pod = seen.staying[0]
        return f"{pod.role} pod {pod.name}" + (f" and {n} more" if (n := len(seen.staying) - 1) else "")
    if seen.cluster is not None and seen.cluster.owner_uid == seen.job.uid and not seen.pods:
        return f"RayCluster {seen.cluster.name}"
    return None


def _reusable(seen: Observation, ended: AttemptStatus) -> bool:
    """Whether the driver alone ended: the pods are those that the attempt had, and none is ending. They are kept
    through the whole back-off, in which a readiness probe may miss a beat."""
    cluster = seen.job.status.cluster
    if ended.reason not in retries.IN_PLACE or cluster is None or seen.cluster is None or seen.cluster.deleting:
        return False
    ending = any(pod.ended or pod.deleting for pod in seen.core)
    return not seen.cluster.suspended and not ending and cluster.pod_set == seen.pod_set
