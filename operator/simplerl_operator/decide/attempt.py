"""Rules of an attempt that goes its ordinary way: RayCluster, pods, lock, submission, training."""

from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide import clocks, engine_pods, losses, queue, trouble
from simplerl_operator.decide.decision import ITS_EVENTS_COME, Action, Decision
from simplerl_operator.decide.failure import fail
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Lock, Observation

_ASK_AGAIN = 2.0
"""Seconds between two questions to a head that does not answer yet."""
_RETRY = 5.0
"""Seconds after a refused creation or submission."""
_STANDS_STILL = 10.0
"""Seconds after which pods that do not come up are looked at without an event."""
_LONGEST_LOOK = 60.0
"""Seconds between two looks at a RayCluster that has no pods yet."""
_SILENCE = 60.0
"""Seconds without a sign of life after which a silent driver is spoken of; one missed poll is not a state."""


def name_taken(seen: Observation, now: float) -> Decision | None:
    """A RayCluster of this name that is not the job's own is left alone."""
    if seen.cluster is None or seen.cluster.owner_uid == seen.job.uid:
        return None
    return fail(
        seen,
        Reason.NAME_TAKEN,
        f"RayCluster {seen.cluster.name} is not this job's: delete or rename it, then the job anew",
    )


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
    reason, message = Reason.CREATING_CLUSTER, f"RayCluster {seen.job.cluster_name} is being made"
    ready = seen.job.condition("Ready")
    if ready is not None and ready.reason == Reason.CLUSTER_REJECTED:
        # stays said while it is tried again, until it works or is refused in other words
        reason, message = Reason.CLUSTER_REJECTED, ready.message
    return Decision(
        action=Action.CREATE_CLUSTER,
        phase=Phase.PROVISIONING,
        reason=reason,
        message=message,
        cluster_ready=False,
        wake=ITS_EVENTS_COME,
    )


def wait_for_pods(seen: Observation, now: float) -> Decision | None:
    """Until the driver is submitted, all pods must be ready; of those that come and go, as many as it starts with."""
    if seen.assembled or seen.job.submitted:
        return None
    found, look = trouble.of(seen), _STANDS_STILL
    if found is None:
        look = _next_look(seen, now)
        ready = sum(pod.ready for pod in seen.pods)
        slow = [
            f"{pod.role} pod {pod.name} was too slow, and KubeRay makes another" for pod in losses.slow_starts(seen)
        ]
        aside = "; ".join(filter(None, [_enough(seen), queue.unheeded(seen, now), *slow[-1:]]))
        found = (
            Reason.WAITING_FOR_PODS,
            f"{ready} of {seen.wanted_pods} pods are ready" + (f"; {aside}" if aside else ""),
        )
    reason, message = found
    return Decision(
        phase=Phase.PROVISIONING,
        reason=reason,
        message=message,
        cluster_ready=False,
        wake=min(look, clocks.until_deadline(seen, now)),
    )


def _next_look(seen: Observation, now: float) -> float:
    """Seconds. Pods that stand still are asked why at an even pace. A RayCluster without any waits for its turn at
    KubeRay, which says at once what keeps it from making them: of a thousand, each is looked at ever more seldom."""
    if seen.pods or seen.cluster is None:
        return _STANDS_STILL
    return min(max(_STANDS_STILL, (now - clock.seconds(seen.cluster.created)) / 2), _LONGEST_LOOK)


def open_lock(seen: Observation, now: float) -> Decision | None:
    """A head that answers without the job's token is not given any work."""
    if seen.job.submitted or seen.head is None or seen.head.lock is not Lock.OPEN:
        return None
    return fail(
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
        message=f"{'enough' if seen.job.elastic else 'all'} pods are ready; the head's dashboard does not answer yet"
        + (f": {silence}" if silence else ""),
        cluster_ready=True,
        wake=min(_ASK_AGAIN, clocks.until_deadline(seen, now)),
    )


def submit(seen: Observation, now: float) -> Decision | None:
    """The driver is submitted under the attempt's name, unless Ray knows it already; what comes of it is said next."""
    if seen.job.submitted or (seen.head is not None and seen.head.ray_job is not None):
        return None
    return Decision(action=Action.SUBMIT, wake=0.0)


def follow(seen: Observation, now: float) -> Decision | None:
    """The driver's own account of what it does; until there is one, what was said before stands."""
    action, wake, change, told = Action.NOTHING, clocks.NO_DEADLINE * 1000, None, None
    if clocks.training(seen):
        reason, message = Reason.TRAINING, "the trainer is at work"
        if seen.progress and seen.progress.non_finite:
            message = f"the newest step has figures that are not finite: {', '.join(sorted(seen.progress.non_finite))}"
        silence = seen.head.silence if seen.head else ""
        if silence and now - clocks.last_progress(seen, now) > _SILENCE:
            reason, message = Reason.DRIVER_SILENT, silence
        phase = Phase.TRAINING
        if _other_engines(seen):
            action, wake = Action.SET_ENGINES, _RETRY
        else:
            change, told = engine_pods.change(seen), engine_pods.told(seen)
            if change is not None:
                action, wake = Action.SCALE_ENGINES, _RETRY
        limit = clocks.last_progress(seen, now) + clocks.recovery(seen).stall_timeout_seconds - now
    else:
        phase, limit = Phase.STARTING, clocks.until_deadline(seen, now)
        reason, message = Reason.DRIVER_STARTING, "the driver prepares the run"
    return Decision(
        action=action,
        phase=phase,
        reason=reason,
        message=message,
        cluster_ready=True,
        submitted=True,
        engine_pods=change,
        engines=told,
        wake=max(1.0, min(limit, wake)),
    )


def _enough(seen: Observation) -> str:
    """With which pods it starts, where not all are needed."""
    if not seen.job.elastic or seen.least_engine_pods == seen.wanted_engine_pods:
        return ""
    return f"the head, {seen.wanted_core - 1} with ranks and {seen.least_engine_pods} with engines are enough"


def _other_engines(seen: Observation) -> bool:
    """Whether the driver wants another number of engines than the spec."""
    wanted, engines = seen.job.wanted_engines, seen.progress.engines if seen.progress is not None else None
    return wanted is not None and engines is not None and engines.desired != wanted
