"""Rules for a job whose RayCluster Kueue holds back, or takes back. Whether Kueue manages a job is seen by what it does
to the RayCluster; the label that names a queue is only a wish."""

from simplerl_api.progress import RunState
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide import recovering
from simplerl_operator.decide.decision import Begin, Decision, Ended
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation
from simplerl_operator.observe.workload import QUEUE

_SOON, _LATER = 2.0, 30.0
"""Seconds until the next look at Kueue's reasons, before and after they are there. Admission itself is an event."""
_HEED = 10.0
"""Seconds in which Kueue takes a RayCluster that it manages."""


def held_back(seen: Observation, now: float) -> Decision | None:
    """While Kueue keeps the RayCluster suspended, the job waits; what ran in it will be submitted anew."""
    if seen.cluster is None or not seen.cluster.suspended or seen.cluster.deleting:
        return None
    if seen.progress is not None and seen.progress.state is RunState.SUCCEEDED:
        return None  # a driver that had done all its work when the pods were taken has done it
    reason, message = _why(seen)
    told = seen.workload is not None and seen.workload.waiting != ""
    return Decision(
        phase=Phase.QUEUED,
        reason=reason,
        message=message,
        cluster_ready=False,
        queued=True,
        ended=Ended(charged=False) if _at_work(seen) else None,
        wake=_LATER if told else _SOON,
    )


def readmitted(seen: Observation, now: float) -> Decision | None:
    """Kueue took the pods and gave others while the operator was away: what ended in between is no failure. Another
    attempt begins with the admission."""
    if seen.job.status.phase is Phase.QUEUED or not seen.readmitted:
        return None
    assert seen.workload is not None, "an admission is Kueue's"
    why = seen.workload.evicted_before
    return Decision(
        phase=Phase.QUEUED,
        reason=Reason.EVICTED,
        message="Kueue took the pods back and admitted the job again while nobody looked" + (f": {why}" if why else ""),
        cluster_ready=False,
        queued=True,
        ended=Ended(charged=False) if _at_work(seen) else None,
        wake=0.0,
    )


def admitted(seen: Observation, now: float) -> Decision | None:
    """Admission is written down before anything else: the clocks of the attempt count from it."""
    waited = seen.job.status.phase is Phase.QUEUED
    unnoticed = seen.job.status.admitted_time is None and seen.workload is not None and seen.workload.admitted
    if seen.cluster is None or seen.cluster.deleting or not (waited or unnoticed):
        return None
    again = recovering.ended(seen)
    if again and seen.former:
        pod = seen.former[0]
        return Decision(
            phase=Phase.QUEUED,
            reason=Reason.WAITING_FOR_OLD_PODS,
            message=f"admitted by Kueue; the next attempt waits for {pod.role} pod {pod.name} to go",
            cluster_ready=False,
            wake=_SOON,
        )
    return Decision(
        phase=Phase.PROVISIONING,
        reason=Reason.WAITING_FOR_PODS,
        message="admitted by Kueue; the pods are being made",
        cluster_ready=False,
        begin=Begin.ADMITTED if again else None,
        admitted=True,
        wake=0.0,
    )


def unheeded(seen: Observation, now: float) -> str:
    """A sentence where the job names a queue and no Kueue has taken its RayCluster."""
    queue = seen.job.labels.get(QUEUE)
    if not queue or seen.cluster is None or seen.workload is not None or seen.job.status.admitted_time is not None:
        return ""
    if now - clock.seconds(seen.cluster.created) < _HEED:
        return ""
    return f"label {QUEUE} is {queue}, but no Kueue has taken RayCluster {seen.cluster.name}: it does not queue"


def _at_work(seen: Observation) -> bool:
    """Whether the attempt has had pods, which it loses."""
    if recovering.ended(seen):
        return False
    return seen.job.submitted or (
        seen.job.status.phase is Phase.PROVISIONING and seen.job.status.admitted_time is not None
    )


def _why(seen: Observation) -> tuple[Reason, str]:
    workload, cluster = seen.workload, seen.cluster
    assert cluster is not None, "a RayCluster was found suspended"
    if workload is None:
        return Reason.QUEUED, f"RayCluster {cluster.name} is suspended, and Kueue has no Workload for it yet"
    if workload.evicted is not None:
        reason = Reason.PREEMPTED if workload.evicted.reason == "Preempted" else Reason.EVICTED
        return reason, (
            f"Kueue took the pods back into LocalQueue {workload.queue} ({workload.evicted.reason}): "
            f"{workload.evicted.message}"
        )
    return Reason.QUEUED, f"waiting in LocalQueue {workload.queue}: {workload.waiting or 'Kueue has not decided yet'}"
