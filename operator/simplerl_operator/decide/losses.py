"""Rules for an attempt that has ended by itself, or lost a part that it cannot do without."""

from simplerl_api.progress import Progress, RunState
from simplerl_api.status import Phase
from simplerl_operator.decide.decision import Decision
from simplerl_operator.decide.failure import fail
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe import pods
from simplerl_operator.observe.observation import Observation, RayJobState


def driver_finished(seen: Observation, now: float) -> Decision | None:
    """The driver's last document says how the run ended."""
    last = last_document(seen)
    if last is None or not last.finished:
        return None
    if last.state is RunState.SUCCEEDED:
        return Decision(
            phase=Phase.SUCCEEDED,
            reason=Reason.COMPLETED,
            message=f"all {last.total_steps} steps are done" if last.total_steps else "the evaluation is done",
            cluster_ready=False,
        )
    if last.failure is None:
        return fail(seen, Reason.DRIVER_FAILED, "the driver ended without saying why")
    return fail(seen, last.failure.reason, last.failure.message)


def last_document(seen: Observation) -> Progress | None:
    """What the driver last said: over /progress, or else in its log."""
    if seen.progress is not None and seen.progress.finished:
        return seen.progress
    final = seen.head.ray_job.final if seen.head and seen.head.ray_job else None
    return final or seen.progress


def ray_job_over(seen: Observation, now: float) -> Decision | None:
    """Ray says that the driver's process has ended, and it left no last document."""
    job = seen.head.ray_job if seen.head else None
    if job is None or not job.state.over:
        return None
    if job.state is RayJobState.STOPPED:
        return fail(seen, Reason.DRIVER_STOPPED, f"the Ray job {seen.job.cluster_name} was stopped by somebody")
    code = "" if job.exit_code is None else f" with exit code {job.exit_code}"
    said = f": {' '.join(job.message.split())[:300]}" if job.message and job.exit_code is None else ""
    return fail(seen, Reason.DRIVER_FAILED, f"the driver ended{code} without a last document{said}")


def cluster_lost(seen: Observation, now: float) -> Decision | None:
    """The RayCluster that was made is gone, or going."""
    if seen.job.status.cluster is None or (seen.cluster is not None and not seen.cluster.deleting):
        return None
    return fail(seen, Reason.CLUSTER_LOST, f"RayCluster {seen.job.status.cluster.name} was deleted by somebody")


def head_lost(seen: Observation, now: float) -> Decision | None:
    """The head's containers are gone for good, or its pod is."""
    ended = [pod for pod in (*seen.pods, *seen.lost) if pod.role == pods.HEAD and pod.ended]
    if ended:
        return fail(seen, Reason.HEAD_LOST, f"head pod {ended[0].name} ended: {ended[0].story}")
    if not _complete_once(seen):
        return None
    head = seen.head_pod
    if head is not None and not head.deleting:
        return None
    gone = [head] if head else [pod for pod in seen.lost if pod.role == pods.HEAD]
    if gone:
        return fail(seen, Reason.HEAD_LOST, f"head pod {gone[-1].name} was deleted")
    return fail(seen, Reason.HEAD_LOST, "the head pod is gone; how it ended was not seen")


def worker_lost(seen: Observation, now: float) -> Decision | None:
    """A worker's containers are gone for good, or the pods are no longer the ones that were ready."""
    ended = [pod for pod in (*seen.pods, *seen.lost) if pod.role == pods.WORKER and pod.ended]
    if ended:
        return fail(seen, Reason.WORKER_LOST, f"worker pod {ended[0].name} ended: {ended[0].story}")
    if not _complete_once(seen):
        return None
    leaving = [pod for pod in seen.workers if pod.deleting]
    alive = [pod for pod in seen.pods if not pod.deleting]
    cluster = seen.job.status.cluster
    if cluster is None or cluster.pod_set == pods.set_digest(alive):
        return None
    gone = leaving + [pod for pod in seen.lost if pod.role == pods.WORKER]
    if gone:
        return fail(seen, Reason.WORKER_LOST, f"worker pod {gone[0].name} was deleted")
    return fail(seen, Reason.WORKER_LOST, "a worker pod is gone; how it ended was not seen")


def submission_lost(seen: Observation, now: float) -> Decision | None:
    """A head that forgot the job has lost the run with it."""
    if not seen.job.submitted or seen.head is None or not seen.head.asked or seen.head.ray_job is not None:
        return None
    return fail(seen, Reason.SUBMISSION_LOST, f"Ray no longer knows the job {seen.job.cluster_name} submitted to it")


def _complete_once(seen: Observation) -> bool:
    """Whether all pods of the attempt were ready at some time."""
    return seen.job.status.cluster is not None and seen.job.status.cluster.pod_set is not None
