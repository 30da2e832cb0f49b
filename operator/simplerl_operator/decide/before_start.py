"""Rules until the first attempt begins."""

from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide.decision import ITS_EVENTS_COME, Action, Begin, Decision
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation

_FIRST_WAIT, _LONGEST_WAIT = 2.0, 60.0


def invalid(seen: Observation, now: float) -> Decision | None:
    """A spec with faults is refused with their sentences; an edit calls for the next look."""
    if seen.job.started or not seen.job.faults:
        return None
    return _refuse(Reason.INVALID_SPEC, "; ".join(seen.job.faults), wake=None)


def missing(seen: Observation, now: float) -> Decision | None:
    """What the spec refers to must exist, and the checkpoint claim must reach every node."""
    if seen.job.started or seen.inputs is None:
        return None
    inputs, namespace, wake = seen.inputs, seen.job.namespace, _wait(seen, now)
    if (claim := inputs.missing_claim) is not None:
        return _refuse(
            Reason.CLAIM_NOT_FOUND,
            f"there is no PersistentVolumeClaim {claim} in namespace {namespace}: create it",
            wake,
        )
    if inputs.unshared_claim is not None:
        field, claim, modes = inputs.unshared_claim
        nodes = seen.job.plan.nodes if seen.job.plan else 0
        return _refuse(
            Reason.CACHE_NOT_SHARED if field == "model.cacheClaimName" else Reason.CHECKPOINT_NOT_SHARED,
            f"{field} is {claim}, a claim of access mode {modes}, but the job has {nodes} worker pods "
            "that must all write it: use a ReadWriteMany claim, or one worker pod",
            wake,
        )
    if inputs.missing_config_map is not None:
        return _refuse(
            Reason.CONFIG_MAP_NOT_FOUND,
            f"there is no ConfigMap {inputs.missing_config_map} in namespace {namespace}: create it",
            wake,
        )
    if inputs.bad_code is not None:
        return _refuse(Reason.INVALID_REWARD_CODE, inputs.bad_code, wake)
    if inputs.missing_secret is not None:
        return _refuse(
            Reason.SECRET_NOT_FOUND,
            f"there is no Secret {inputs.missing_secret} in namespace {namespace}: create it",
            wake,
        )
    return None


def rejected(seen: Observation, now: float) -> Decision | None:
    """The API server must take the RayCluster: its answer to a rehearsal is passed on."""
    if seen.job.started or seen.inputs is None or seen.inputs.rejection is None:
        return None
    return _refuse(Reason.CLUSTER_REJECTED, seen.inputs.rejection, _wait(seen, now))


def start(seen: Observation, now: float) -> Decision | None:
    """The first attempt begins with a write to the status: from then on the spec is fixed, and only then is anything
    made of it, in the same turn. Its RayCluster is new: none is looked for."""
    if seen.job.started:
        return None
    return Decision(
        action=Action.CREATE_CLUSTER,
        phase=Phase.PROVISIONING,
        reason=Reason.CREATING_CLUSTER,
        message=f"RayCluster {seen.job.cluster_name} is being made",
        cluster_ready=False,
        begin=Begin.FIRST,
        wake=ITS_EVENTS_COME,
    )


def _refuse(reason: Reason, message: str, wake: float | None) -> Decision:
    return Decision(phase=Phase.PENDING, reason=reason, message=message, refused=True, wake=wake)


def _wait(seen: Observation, now: float) -> float:
    """As long again as it has been refused already, within bounds."""
    accepted = seen.job.condition("Accepted")
    if accepted is None or accepted.status == "True":
        return _FIRST_WAIT
    return min(max(now - clock.seconds(accepted.last_transition_time), _FIRST_WAIT), _LONGEST_WAIT)
