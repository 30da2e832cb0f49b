"""Rules for an attempt that has ended by itself, or lost a part that it cannot do without."""

import signal

from simplerl_api.failures import FailureReason
from simplerl_api.progress import RunState
from simplerl_api.status import Phase
from simplerl_operator.decide import trouble
from simplerl_operator.decide.decision import Decision
from simplerl_operator.decide.failure import lose
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe import pods
from simplerl_operator.observe.observation import Observation, RayJobState
from simplerl_operator.observe.pods import OUT_OF_MEMORY, Pod

_TOO_SLOW = "timed out during startup"
_SLOW_STARTS = 3
"""Workers of one attempt that may start too slowly."""


def driver_succeeded(seen: Observation, now: float) -> Decision | None:
    """The driver's last document says that all is done."""
    last = seen.last_document
    if last is None or last.state is not RunState.SUCCEEDED:
        return None
    return Decision(
        phase=Phase.SUCCEEDED,
        reason=Reason.COMPLETED,
        message=f"all {last.total_steps} steps are done" if last.total_steps else "the evaluation is done",
        cluster_ready=False,
    )


def driver_failed(seen: Observation, now: float) -> Decision | None:
    """The driver's last document says why the run ended. Where the cluster took a pod from it, that is why; so it is
    where pods that come and go did not come."""
    last = seen.last_document
    if last is None or not last.finished:
        return None
    if (victim := _disrupted(seen)) is not None:
        said = "the driver drained" if last.failure is None else last.failure.message
        return lose(seen, now, Reason.INTERRUPTED, f"{_taken(victim)}; {said}", charged=False)
    if last.state is RunState.DRAINED:
        return lose(seen, now, Reason.DRAINED, "the driver was asked to drain, and has done so", charged=False)
    if last.failure is None:
        return lose(seen, now, Reason.DRIVER_FAILED, "the driver ended without saying why")
    if last.failure.reason == FailureReason.LOST_ENGINES and (why := trouble.too_few_engines(seen)):
        return lose(seen, now, Reason.INTERRUPTED, f"{last.failure.message}; {why}", charged=False)
    return lose(seen, now, last.failure.reason, last.failure.message + out_of_memory(seen))


def out_of_memory(seen: Observation) -> str:
    """What is added to a driver's account where a container was ended for want of memory: the driver only sees that a
    peer is gone."""
    found = [pod for pod in (*seen.pods, *seen.lost) if any(t.reason == OUT_OF_MEMORY for t in pod.terminations)]
    return f"; {found[0].role} pod {found[0].name} ended: {found[0].story}" if found else ""


def ray_job_over(seen: Observation, now: float) -> Decision | None:
    """Ray says that the driver's process has ended, and it left no last document."""
    job = seen.head.ray_job if seen.head else None
    if job is None or not job.state.over:
        return None
    if (victim := _disrupted(seen)) is not None:
        return lose(seen, now, Reason.INTERRUPTED, _taken(victim), charged=False)
    if job.state is RayJobState.STOPPED:
        return lose(seen, now, Reason.DRIVER_STOPPED, f"the Ray job {seen.job.submission_id} was stopped by somebody")
    said = f": {' '.join(job.message.split())[:300]}" if job.message and job.exit_code is None else ""
    return lose(seen, now, Reason.DRIVER_FAILED, f"the driver {_end(job.exit_code)} without a last word{said}")


def _end(code: int | None) -> str:
    if code is None or code >= 0:
        return "ended" if code is None else f"ended with exit code {code}"
    if code == -signal.SIGKILL:
        return "was killed (SIGKILL: for want of memory in the head pod, perhaps)"
    return f"was killed (signal {-code})"


def cluster_lost(seen: Observation, now: float) -> Decision | None:
    """The RayCluster that was made is gone, or going."""
    if seen.job.status.cluster is None or (seen.cluster is not None and not seen.cluster.deleting):
        return None
    name = seen.job.status.cluster.name
    return lose(seen, now, Reason.CLUSTER_LOST, f"RayCluster {name} was deleted by somebody")


def head_lost(seen: Observation, now: float) -> Decision | None:
    """The head's containers are gone for good, or its pod is."""
    ended = [pod for pod in (*seen.pods, *seen.lost) if pod.role == pods.HEAD and pod.ended]
    if ended:
        return _lose(seen, now, Reason.HEAD_LOST, ended[0], f"head pod {ended[0].name} ended: {ended[0].story}")
    if not _complete_once(seen):
        return None
    head = seen.head_pod
    if head is not None and not head.deleting:
        return None
    gone = [head] if head else [pod for pod in seen.lost if pod.role == pods.HEAD]
    if gone:
        return _lose(seen, now, Reason.HEAD_LOST, gone[-1], f"head pod {gone[-1].name} was deleted")
    return _lose(seen, now, Reason.HEAD_LOST, None, "the head pod is gone; how it ended was not seen")


def worker_lost(seen: Observation, now: float) -> Decision | None:
    """A worker's containers are gone for good, or the pods are no longer the ones that were ready.

    Where some workers hold engines alone, the driver knows which are gone: KubeRay replaces a pod without ranks and its
    engines join again, and of a rank's it says LostRank. Those that come and go are seen to be such.
    """
    if seen.job.submitted and seen.job.engines_apart:
        return None
    ended = [pod for pod in (*seen.core, *seen.lost_core) if pod.role == pods.WORKER and pod.ended]
    if ended and len(slow_starts(seen)) != len(ended):
        return _lose(seen, now, Reason.WORKER_LOST, ended[0], f"worker pod {ended[0].name} ended: {ended[0].story}")
    if not _complete_once(seen):
        return None
    leaving = [pod for pod in seen.core if pod.role == pods.WORKER and pod.deleting]
    alive = [pod for pod in seen.core if not pod.deleting]
    cluster = seen.job.status.cluster
    if cluster is None or cluster.pod_set == pods.set_digest(alive):
        return None
    gone = leaving + [pod for pod in seen.lost_core if pod.role == pods.WORKER]
    if gone:
        return _lose(seen, now, Reason.WORKER_LOST, gone[0], f"worker pod {gone[0].name} was deleted")
    return _lose(seen, now, Reason.WORKER_LOST, None, "a worker pod is gone; how it ended was not seen")


def slow_starts(seen: Observation) -> list[Pod]:
    """Workers whose Ray was not up within its own 30 s, which nothing lengthens (ray/_private/node.py): their nodes
    were busy. KubeRay makes others, so that some of them are no loss while the pods were never all ready."""
    if _complete_once(seen):
        return []
    slow = [pod for pod in (*seen.core, *seen.lost_core) if pod.role == pods.WORKER and pod.ended and _too_slow(pod)]
    return slow if len(slow) <= _SLOW_STARTS else []


def _too_slow(pod: Pod) -> bool:
    return any(t.log is not None and _TOO_SLOW in t.log for t in pod.terminations)


def submission_lost(seen: Observation, now: float) -> Decision | None:
    """A head that forgot the job has lost the run with it."""
    if not seen.job.submitted or seen.head is None or not seen.head.asked or seen.head.ray_job is not None:
        return None
    return lose(
        seen, now, Reason.SUBMISSION_LOST, f"Ray no longer knows the job {seen.job.submission_id} submitted to it"
    )


def _complete_once(seen: Observation) -> bool:
    """Whether all pods of the attempt were ready at some time."""
    return seen.job.status.cluster is not None and seen.job.status.cluster.pod_set is not None


def _lose(seen: Observation, now: float, reason: Reason, pod: Pod | None, message: str) -> Decision:
    """The attempt ends with a pod; it is not charged where the cluster took the pod, this one or another."""
    victim = pod if pod is not None and pod.disruption else _disrupted(seen)
    if victim is not None:
        return lose(seen, now, Reason.INTERRUPTED, _taken(victim), charged=False)
    return lose(seen, now, reason, message)


def _disrupted(seen: Observation) -> Pod | None:
    """A pod of the attempt that the cluster took, unless all pods are well again and none was a rank's: KubeRay may
    have replaced a rank's pod while nobody looked, and the driver that missed it has ended."""
    cluster = seen.job.status.cluster
    replaced = cluster is not None and cluster.pod_set not in (None, seen.pod_set)
    if seen.ready and (seen.job.engines_apart or not replaced):
        return None
    return next((pod for pod in (*seen.core, *seen.lost_core) if pod.disruption), None)


def _taken(pod: Pod) -> str:
    return f"the cluster took {pod.role} pod {pod.name}: {pod.disruption}"
