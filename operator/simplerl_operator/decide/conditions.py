"""From a decision to the conditions of the job, in the manner of metav1.Condition and kstatus
(https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md)."""

from collections.abc import Sequence

from simplerl_api.status import Condition, Phase
from simplerl_operator import clock
from simplerl_operator.decide import engine_pods
from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.job import Job

READY_PHASES = frozenset({Phase.TRAINING, Phase.SUSPENDED, Phase.SUCCEEDED})
"""As for batch Jobs, a running or suspended one is current: tools that wait for Ready do not time out on training."""
MESSAGE_LENGTH = 2048


def conditions(job: Job, decision: Decision, now: float) -> list[Condition]:
    """All conditions of a job after a decision."""
    assert decision.phase is not None
    reason, message = decision.reason, decision.message
    stalled = decision.phase is Phase.FAILED or decision.refused
    ready = decision.phase in READY_PHASES and not decision.refused
    rows: Sequence[tuple[str, bool | None, str, str]] = (
        (
            "Accepted",
            not decision.refused,
            reason if decision.refused else "Accepted",
            message if decision.refused else "",
        ),
        ("ClusterReady", *_cluster_ready(job, decision)),
        ("Suspended", *_suspended(decision)),
        ("Succeeded", *_succeeded(decision)),
        ("Ready", ready, reason, message),
        ("Reconciling", not ready and not stalled, reason, message if not ready and not stalled else ""),
        ("Stalled", stalled, reason, message if stalled else ""),
    )
    if (scaled := _engines(job, decision)) is not None:
        rows = (*rows, scaled)
    return [_condition(job, kind, status, why, says, now) for kind, status, why, says in rows]


def _cluster_ready(job: Job, decision: Decision) -> tuple[bool | None, str, str]:
    if decision.cluster_ready is None:
        return None, Reason.NOT_STARTED, ""
    if decision.cluster_ready:
        return True, Reason.ALL_PODS_READY, ""
    if decision.over:
        return False, Reason.RELEASED, "the job is over"
    return False, decision.reason, decision.message


def _suspended(decision: Decision) -> tuple[bool, str, str]:
    match decision.phase:
        case Phase.SUSPENDED:
            return True, Reason.SUSPENDED, ""
        case Phase.SUSPENDING:
            return False, decision.reason, decision.message
        case _:
            return False, Reason.NOT_SUSPENDED, ""


def _engines(job: Job, decision: Decision) -> tuple[str, bool, str, str] | None:
    """Told while a running job has, or should have, other engines than it was planned with, and wherever engines should
    come and go."""
    wanted, trains = job.wanted_engines, decision.phase is Phase.TRAINING
    if job.plan is None or decision.over:
        return None
    if trains and decision.action is Action.SET_ENGINES and (job.elastic or wanted != job.plan.engines):
        return "EnginesScaled", False, Reason.ASKING_DRIVER, f"the driver is asked for {wanted} engines"
    if trains and job.elastic:
        return _elastic(job, decision)
    if wanted is not None and wanted != job.plan.engines:
        if not trains:
            return "EnginesScaled", False, Reason.NOT_TRAINING, "the number of engines changes while the job trains"
        said = f"from the next weight sync on {wanted} of {job.plan.engines} engines draw; all GPUs stay with the job"
        return "EnginesScaled", True, Reason.ENGINES_SCALED, said
    if trains and job.spec is not None and job.spec.rollout.elastic is not None:
        return "EnginesScaled", False, Reason.QUEUE_MANAGED, engine_pods.STAY
    return None


def _elastic(job: Job, decision: Decision) -> tuple[str, bool, str, str] | None:
    if decision.engines is not None:
        return "EnginesScaled", *decision.engines
    before = job.condition("EnginesScaled")  # of a driver that is not heard, or has said nothing of engines yet
    if before is None or before.reason == Reason.NOT_TRAINING:
        return None
    return "EnginesScaled", before.status == "True", before.reason, before.message


def _succeeded(decision: Decision) -> tuple[bool | None, str, str]:
    match decision.phase:
        case Phase.SUCCEEDED:
            return True, decision.reason, decision.message
        case Phase.FAILED:
            return False, decision.reason, decision.message
        case _:
            return None, Reason.IN_PROGRESS, ""


def _condition(job: Job, kind: str, status: bool | None, reason: str, message: str, now: float) -> Condition:
    word = "Unknown" if status is None else str(status)
    before = job.condition(kind)
    changed = before is None or before.status != word
    return Condition(
        type=kind,
        status=word,
        reason=reason,
        message=clip(message, MESSAGE_LENGTH),
        last_transition_time=clock.rfc3339(now) if changed or before is None else before.last_transition_time,
        observed_generation=job.generation,
    )


def clip(text: str, length: int) -> str:
    """The text, cut to a length in characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
