"""Rules of an attempt, from the creation of its RayCluster to its end."""

from simplerl_api.progress import RunState
from simplerl_api.spec.recovery import Recovery
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide import trouble
from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe import pods
from simplerl_operator.observe.observation import Lock, Observation, RayJobState

_ASK_AGAIN = 2.0
"""Seconds between two questions to a head that does not answer yet."""
_RETRY = 5.0
"""Seconds after a refused creation or submission."""
_STANDS_STILL = 10.0
"""Seconds after which pods that do not come up are looked at without an event."""
_SILENCE = 60.0
"""Seconds without a sign of life after which a silent driver is spoken of; one missed poll is not a state."""


def name_taken(seen: Observation, now: float) -> Decision | None:
    """A RayCluster of this name that is not the job's own is left alone."""
    if seen.cluster is None or seen.cluster.owner_uid == seen.job.uid:
        return None
    return _fail(
        seen,
        Reason.NAME_TAKEN,
        f"RayCluster {seen.cluster.name} is not this job's: delete or rename it, then the job anew",
    )


def driver_finished(seen: Observation, now: float) -> Decision | None:
    """The driver's last document says how the run ended."""
    last = seen.progress or None
    if last is None or not last.finished:
        last = seen.head.ray_job.final if seen.head and seen.head.ray_job else None
    if last is None or not last.finished:
        return None
    if last.state is RunState.SUCCEEDED:
        return Decision(
            phase=Phase.SUCCEEDED,
            reason=Reason.COMPLETED,
            message=f"all {last.total_steps} steps are done",
            cluster_ready=False,
        )
    if last.failure is None:
        return _fail(seen, Reason.DRIVER_FAILED, "the driver ended without saying why")
    return _fail(seen, last.failure.reason, last.failure.message)


def ray_job_over(seen: Observation, now: float) -> Decision | None:
    """Ray says that the driver's process has ended, and it left no last document."""
    job = seen.head.ray_job if seen.head else None
    if job is None or not job.state.over:
        return None
    if job.state is RayJobState.STOPPED:
        return _fail(seen, Reason.DRIVER_STOPPED, f"the Ray job {seen.job.cluster_name} was stopped by somebody")
    code = "" if job.exit_code is None else f" with exit code {job.exit_code}"
    said = f": {' '.join(job.message.split())[:300]}" if job.message and job.exit_code is None else ""
    return _fail(seen, Reason.DRIVER_FAILED, f"the driver ended{code} without a last document{said}")


def cluster_lost(seen: Observation, now: float) -> Decision | None:
    """The RayCluster that was made is gone, or going."""
    if seen.job.status.cluster is None or (seen.cluster is not None and not seen.cluster.deleting):
        return None
    return _fail(seen, Reason.CLUSTER_LOST, f"RayCluster {seen.job.status.cluster.name} was deleted by somebody")


def head_lost(seen: Observation, now: float) -> Decision | None:
    """The head's containers are gone for good, or its pod is."""
    ended = [pod for pod in (*seen.pods, *seen.lost) if pod.role == pods.HEAD and pod.ended]
    if ended:
        return _fail(seen, Reason.HEAD_LOST, f"head pod {ended[0].name} ended: {ended[0].story}")
    if not _complete_once(seen):
        return None
    head = seen.head_pod
    if head is not None and not head.deleting:
        return None
    gone = [head] if head else [pod for pod in seen.lost if pod.role == pods.HEAD]
    if gone:
        return _fail(seen, Reason.HEAD_LOST, f"head pod {gone[-1].name} was deleted")
    return _fail(seen, Reason.HEAD_LOST, "the head pod is gone; how it ended was not seen")


def worker_lost(seen: Observation, now: float) -> Decision | None:
    """A worker's containers are gone for good, or the pods are no longer the ones that were ready."""
    ended = [pod for pod in (*seen.pods, *seen.lost) if pod.role == pods.WORKER and pod.ended]
    if ended:
        return _fail(seen, Reason.WORKER_LOST, f"worker pod {ended[0].name} ended: {ended[0].story}")
    if not _complete_once(seen):
        return None
    leaving = [pod for pod in seen.workers if pod.deleting]
    alive = [pod for pod in seen.pods if not pod.deleting]
    cluster = seen.job.status.cluster
    if cluster is None or cluster.pod_set == pods.set_digest(alive):
        return None
    gone = leaving + [pod for pod in seen.lost if pod.role == pods.WORKER]
    if gone:
        return _fail(seen, Reason.WORKER_LOST, f"worker pod {gone[0].name} was deleted")
    return _fail(seen, Reason.WORKER_LOST, "a worker pod is gone; how it ended was not seen")


def startup_deadline(seen: Observation, now: float) -> Decision | None:
    """Before the first step, nothing waits longer than spec.recovery.startupDeadlineSeconds."""
    limit = _recovery(seen).startup_deadline_seconds
    if _training(seen) or now < _started(seen) + limit:
        return None
    found = trouble.of(seen)
    ready = seen.job.condition("Ready")
    why = found[1] if found else seen.refusal or (ready.message if ready else "") or "the pods are not ready"
    return _fail(
        seen,
        Reason.STARTUP_DEADLINE,
        f"training did not begin within {limit} s (spec.recovery.startupDeadlineSeconds): {why}",
    )


def stalled(seen: Observation, now: float) -> Decision | None:
    """While training, something must move within spec.recovery.stallTimeoutSeconds."""
    limit = _recovery(seen).stall_timeout_seconds
    if not _training(seen) or now < _last_progress(seen, now) + limit:
        return None
    activity = f" in {seen.progress.activity}" if seen.progress and seen.progress.activity else ""
    return _fail(seen, Reason.STALLED, f"nothing moved{activity} for {limit} s (spec.recovery.stallTimeoutSeconds)")


def refused(seen: Observation, now: float) -> Decision | None:
    """The API server or Ray refused what was just tried; it is tried again until the startup deadline."""
    if not seen.refusal:
        return None
    if seen.cluster is None:
        return Decision(
            phase=Phase.PROVISIONING,
            reason=Reason.CLUSTER_REJECTED,
            message=f"RayCluster {seen.job.cluster_name} cannot be made: {seen.refusal}",
            cluster_ready=False,
            wake=_RETRY,
        )
    return Decision(
        phase=Phase.STARTING,
        reason=Reason.SUBMISSION_REFUSED,
        message=f"the driver cannot be submitted: {seen.refusal}",
        cluster_ready=True,
        wake=_RETRY,
    )


def create(seen: Observation, now: float) -> Decision | None:
    """The RayCluster is made once an attempt."""
    if seen.cluster is not None:
        return None
    return Decision(
        action=Action.CREATE_CLUSTER,
        phase=Phase.PROVISIONING,
        reason=Reason.CREATING_CLUSTER,
        message=f"RayCluster {seen.job.cluster_name} is being made",
        cluster_ready=False,
        wake=0.0,
    )


def wait_for_pods(seen: Observation, now: float) -> Decision | None:
    """Until the driver is submitted, all pods must be ready."""
    if seen.ready or seen.job.submitted:
        return None
    found = trouble.of(seen)
    if found is None:
        ready = sum(pod.ready for pod in seen.pods)
        found = Reason.WAITING_FOR_PODS, f"{ready} of {seen.wanted_pods} pods are ready"
    reason, message = found
    return Decision(
        phase=Phase.PROVISIONING,
        reason=reason,
        message=message,
        cluster_ready=False,
        wake=min(_STANDS_STILL, _until_deadline(seen, now)),
    )


def open_lock(seen: Observation, now: float) -> Decision | None:
    """A head that answers without the job's token is not given any work."""
    if seen.job.submitted or seen.head is None or seen.head.lock is not Lock.OPEN:
        return None
    return _fail(
        seen,
        Reason.AUTH_NOT_ENFORCED,
        f"the head does not demand the job's token ({seen.head.silence}): KubeRay 1.6 or newer and Ray 2.52 or newer "
        "are needed",
    )


def wait_for_head(seen: Observation, now: float) -> Decision | None:
    """The head's dashboard comes up a little after its pod."""
    if seen.job.submitted or (seen.head is not None and seen.head.lock is Lock.ENFORCED and seen.head.asked):
        return None
    silence = seen.head.silence if seen.head else ""
    return Decision(
        phase=Phase.PROVISIONING,
        reason=Reason.PROVING_LOCK,
        message="all pods are ready; the head's dashboard does not answer yet" + (f": {silence}" if silence else ""),
        cluster_ready=True,
        wake=min(_ASK_AGAIN, _until_deadline(seen, now)),
    )


def submit(seen: Observation, now: float) -> Decision | None:
    """The driver is submitted under the attempt's name, unless Ray knows it already."""
    if seen.job.submitted or (seen.head is not None and seen.head.ray_job is not None):
        return None
    return Decision(
        action=Action.SUBMIT,
        phase=Phase.STARTING,
        reason=Reason.SUBMITTING,
        message="the driver is being submitted",
        cluster_ready=True,
        wake=0.0,
    )


def submission_lost(seen: Observation, now: float) -> Decision | None:
    """A head that forgot the job has lost the run with it."""
    if not seen.job.submitted or seen.head is None or not seen.head.asked or seen.head.ray_job is not None:
        return None
    return _fail(seen, Reason.SUBMISSION_LOST, f"Ray no longer knows the job {seen.job.cluster_name} submitted to it")


def follow(seen: Observation, now: float) -> Decision | None:
    """The driver's own account of what it does; until there is one, what was said before stands."""
    if _training(seen):
        reason, message = Reason.TRAINING, "the trainer is at work"
        if seen.progress and seen.progress.non_finite:
            message = f"the newest step has figures that are not finite: {', '.join(sorted(seen.progress.non_finite))}"
        silence = seen.head.silence if seen.head else ""
        if silence and now - _last_progress(seen, now) > _SILENCE:
            reason, message = Reason.DRIVER_SILENT, silence
        phase, limit = Phase.TRAINING, _last_progress(seen, now) + _recovery(seen).stall_timeout_seconds - now
    else:
        phase, limit = Phase.STARTING, _until_deadline(seen, now)
        reason, message = Reason.DRIVER_STARTING, "the driver prepares the run"
    return Decision(
        phase=phase, reason=reason, message=message, cluster_ready=True, submitted=True, wake=max(1.0, limit)
    )


def _fail(seen: Observation, reason: str, message: str) -> Decision:
    log: tuple[str, ...] = ()
    if seen.progress is not None and seen.progress.log:
        log = tuple(seen.progress.log)
    if seen.head is not None and seen.head.ray_job is not None:
        final = seen.head.ray_job.final
        log = (tuple(final.log) if final is not None else ()) or seen.head.ray_job.log or log
    return Decision(phase=Phase.FAILED, reason=reason, message=message, cluster_ready=False, log=log)


def _recovery(seen: Observation) -> Recovery:
    return seen.job.spec.recovery if seen.job.spec is not None else Recovery()


def _complete_once(seen: Observation) -> bool:
    """Whether all pods of the attempt were ready at some time."""
    return seen.job.status.cluster is not None and seen.job.status.cluster.pod_set is not None


def _training(seen: Observation) -> bool:
    if seen.job.status.phase is Phase.TRAINING:
        return True
    return seen.job.submitted and seen.progress is not None and seen.progress.state is RunState.TRAINING


def _started(seen: Observation) -> float:
    started = seen.job.status.attempt_start_time or seen.job.status.start_time
    assert started is not None, "an attempt has a start"
    return clock.seconds(started)


def _last_progress(seen: Observation, now: float) -> float:
    """When anything last moved, the latest of what the driver and the status say; a driver that has not been heard
    since this operator started counts from when it fell silent."""
    times = [_started(seen)]
    if seen.job.status.last_progress_time is not None:
        times.append(clock.seconds(seen.job.status.last_progress_time))
    if seen.progress is not None:
        times.append(seen.progress.last_progress)
    else:
        times.append(now if seen.silent_since is None else seen.silent_since)
    return max(times)


def _until_deadline(seen: Observation, now: float) -> float:
    return max(1.0, _started(seen) + _recovery(seen).startup_deadline_seconds - now)
