"""From a look and a decision to the whole new status, and whether it is worth a write."""

from typing import Any

from simplerl_api.status import AttemptStatus, ClusterStatus, FailureStatus, Phase, Status, Termination
from simplerl_operator import clock
from simplerl_operator.decide import charges, figures, losses, usage
from simplerl_operator.decide.conditions import MESSAGE_LENGTH, clip, conditions
from simplerl_operator.decide.decision import Begin, Decision
from simplerl_operator.observe import pods
from simplerl_operator.observe.observation import Observation

LOG_BYTES = 4096
MAX_ATTEMPTS = 5
MAX_TERMINATIONS = 20
MAX_LOGS = 3
_BETWEEN = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.SUSPENDING, Phase.RECOVERING})
"""Phases in which the RayCluster is no longer news."""
_FIGURES = ("training", "evaluations", "checkpoint", "model", "versions", "summary")
"""Parts of the status that change with every step: written at most every so many seconds."""


def compose(seen: Observation, decision: Decision, now: float) -> Status:
    """The status after a decision. Counters and clocks come from the status before; `now` in seconds since 1970."""
    before = seen.job.status
    if decision.phase is None:
        return before if seen.job.deleting else _of_generation(before, seen.job.generation)
    fields: dict[str, Any] = {name: getattr(before, name) for name in Status.model_fields}
    fields |= {
        "observed_generation": seen.job.generation,
        "phase": decision.phase,
        "conditions": conditions(seen.job, decision, now),
    }
    fields |= usage.activity(before, decision, now)
    if decision.begin is not None:
        fields |= _beginning(seen, decision.begin, now)
    elif seen.job.started:
        fields["cluster"] = _cluster(seen, decision, now)
        fields |= _clocks(seen, decision, now)
    if decision.admitted:
        fields["admitted_time"] = clock.rfc3339(now)
        if fields["cluster"] is not None and seen.workload is not None:
            fields["cluster"] = fields["cluster"].model_copy(update={"admission": seen.workload.admitted})
    progress = seen.last_document
    if progress is not None and (decision.over or decision.ended or decision.submitted):
        fields |= figures.read(progress, before, now) | charges.forgiven(seen)
    if decision.over:
        fields |= _ending(decision, now)
    if decision.adaptation is not None:
        fields["adaptations"] = [*before.adaptations, decision.adaptation]
    if decision.over or decision.ended:
        fields |= _attempt(seen, decision, fields, now)
    elif decision.phase is Phase.RECOVERING:
        fields["attempts"] = _heard_late(seen)
    status = Status(**fields)
    model = seen.job.spec.model if seen.job.spec is not None else None
    return status.model_copy(update={"summary": figures.summary(status, model)})


def _of_generation(status: Status, generation: int) -> Status:
    """What is over stays as it is, and holds for a spec whose live fields changed."""
    if status.observed_generation in (None, generation):
        return status
    now = [c.model_copy(update={"observed_generation": generation}) for c in status.conditions]
    return status.model_copy(update={"observed_generation": generation, "conditions": now})


def _beginning(seen: Observation, how: Begin, now: float) -> dict[str, Any]:
    """The first write of an attempt."""
    time, before = clock.rfc3339(now), seen.job.status
    fields: dict[str, Any] = {"attempt_start_time": time, "suspend_time": None, "next_retry_time": None}
    match how:
        case Begin.FIRST:
            return fields | {"start_time": time, "attempt": 1, "plan": seen.job.plan}
        case Begin.NEW_CLUSTER:
            fresh = {"cluster": None, "scheduled_time": None, "admitted_time": None}
            return fields | fresh | {"attempt": seen.job.attempt + 1, "plan": seen.job.plan}
        case Begin.ADMITTED:
            return fields | {"scheduled_time": None, "attempt": seen.job.attempt + 1}
        case Begin.SAME_CLUSTER:
            assert before.cluster is not None, "an attempt goes on in a RayCluster that is there"
            cluster = before.cluster.model_copy(update={"submission_id": None, "engine_pods": None})
            return fields | {"cluster": cluster, "scheduled_time": time, "attempt": seen.job.attempt + 1}


def _clocks(seen: Observation, decision: Decision, now: float) -> dict[str, Any]:
    before, fields = seen.job.status, dict[str, Any]()
    if decision.phase in (Phase.PROVISIONING, Phase.STARTING) and not seen.job.submitted:
        if not seen.scheduled:
            fields["scheduled_time"] = None
        elif before.scheduled_time is None:
            fields["scheduled_time"] = clock.rfc3339(now)
    if decision.phase is Phase.SUSPENDING and before.phase is not Phase.SUSPENDING:
        fields["suspend_time"] = clock.rfc3339(now)
    if decision.ended is not None and decision.ended.retry is not None:
        fields["next_retry_time"] = clock.rfc3339(decision.ended.retry)
    elif decision.phase is not Phase.RECOVERING:
        fields["next_retry_time"] = None
    return fields


def worth_writing(before: Status, after: Status, now: float, figures_seconds: float) -> float | None:
    """Seconds until the new status may be written: 0 is at once, None is never.

    Phases, conditions and the like are written at once, figures every `figures_seconds`, a time alone never.
    """
    if not figures_alone(before, after):
        return 0.0
    if all(getattr(before, name) == getattr(after, name) for name in _FIGURES):
        return None
    if before.training is None:
        return None if after.phase is Phase.STARTING else 0.0  # step 0 is no news before the first one has begun
    return max(0.0, clock.seconds(before.training.last_update_time) + figures_seconds - now)


def figures_alone(before: Status, after: Status) -> bool:
    """Whether nothing but training figures and times differs, and what is written along with them."""
    others = (*_FIGURES, "last_progress_time")
    return _without(_lasting(after), others) == _without(_lasting(before), others)


def _lasting(status: Status) -> Status:
    """Without how many pods of engines are there at the moment: each that comes or goes would be a write."""
    cluster = status.cluster
    if cluster is None or cluster.engine_pods is None:
        return status
    cluster = cluster.model_copy(update={"ready_workers": 0, "engine_pods": None})
    scaled = [c.model_copy(update={"message": ""}) if c.type == "EnginesScaled" else c for c in status.conditions]
    return status.model_copy(update={"cluster": cluster, "conditions": scaled})


def _without(status: Status, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(status, name) for name in Status.model_fields if name not in names}


def _cluster(seen: Observation, decision: Decision, now: float) -> ClusterStatus | None:
    """What is known of the RayCluster; once it is there, what it was stays when it goes."""
    before = seen.job.status.cluster
    if decision.phase is Phase.SUSPENDED:
        return None  # the next attempt has another one
    if seen.cluster is None or seen.cluster.owner_uid != seen.job.uid or decision.phase in _BETWEEN:
        return before
    if decision.queued:
        return ClusterStatus(name=seen.cluster.name, uid=seen.cluster.uid, desired_workers=seen.wanted_pods - 1)
    submission = before.submission_id if before else None
    pod_set = before.pod_set if before else None
    if seen.ready and (pod_set is None or (seen.job.submitted and seen.job.engines_apart)):
        pod_set = seen.pod_set
    ready = sum(pod.ready for pod in seen.workers)
    if seen.job.submitted and before is not None:
        # a readiness probe that misses a beat is no news of a running job
        run = sum(pod.phase == "Running" and not pod.deleting for pod in seen.engine_pods)
        ready = seen.wanted_core - 1 + run if seen.job.elastic else before.ready_workers
    return ClusterStatus(
        name=seen.cluster.name,
        uid=seen.cluster.uid,
        head_service=seen.cluster.head_service or (before.head_service if before else None),
        submission_id=seen.job.submission_id if decision.submitted else submission,
        admission=before.admission if before else None,
        ready_workers=ready,
        desired_workers=seen.wanted_pods - 1,
        pod_set=pod_set,
        engine_pods=usage.engine_pods(seen, now),
    )


def _ending(decision: Decision, now: float) -> dict[str, Any]:
    out: dict[str, Any] = {"completion_time": clock.rfc3339(now)}
    if decision.phase is Phase.FAILED:
        out["failure"] = FailureStatus(
            reason=decision.reason, message=clip(decision.message, MESSAGE_LENGTH), log=log_tail(decision.log)
        )
    return out


def _attempt(seen: Observation, decision: Decision, fields: dict[str, Any], now: float) -> dict[str, Any]:
    """The end of an attempt; one that ended before the job did is not told twice."""
    before, training, said = seen.job.status, fields["training"], seen.last_document
    if before.attempts and before.attempts[-1].number == seen.job.attempt:
        return {}
    ended = AttemptStatus(
        number=seen.job.attempt,
        reason=decision.reason,
        message=clip(decision.message, MESSAGE_LENGTH),
        last_step=said.step if said is not None else training.step if training is not None else 0,
        terminations=_terminations(seen),
    )
    out: dict[str, Any] = {"attempts": [*before.attempts, ended][-MAX_ATTEMPTS:]}
    out["gpu_seconds"] = before.gpu_seconds + usage.gpu_seconds(seen, now)
    if decision.ended is not None and decision.ended.counted:
        out |= charges.charged(seen) if decision.ended.charged else {"interruptions": before.interruptions + 1}
    return out


def _heard_late(seen: Observation) -> list[AttemptStatus]:
    """A driver tells of a rank's end before kubelet tells of its pod's: that a container ran out of memory is added to
    the attempt when it is heard. Other ends may come of the removal of the pods."""
    *others, last = seen.job.status.attempts
    late = [t for t in _terminations(seen) if t.reason == pods.OUT_OF_MEMORY and t not in last.terminations]
    known = [*last.terminations, *late][:MAX_TERMINATIONS]
    message = clip(last.message + losses.out_of_memory(seen), MESSAGE_LENGTH) if late else last.message
    return [*others, last.model_copy(update={"terminations": known, "message": message})]


def _terminations(seen: Observation) -> list[Termination]:
    """How containers ended; what the first of them wrote last, since those that follow mostly miss the first."""
    found = list(dict.fromkeys(t for pod in pods.ordered((*seen.lost, *seen.pods)) for t in pod.terminations))
    told = [t for t in found if t.log is not None][:MAX_LOGS]
    return [t if t in told else t.model_copy(update={"log": None}) for t in found][:MAX_TERMINATIONS]


def log_tail(lines: tuple[str, ...]) -> str:
    """The last whole lines that fit into 4 KiB of UTF-8."""
    kept: list[str] = []
    room = LOG_BYTES
    for line in reversed(lines):
        size = len(line.encode()) + 1
        if size > room:
            if not kept:
                kept.append(line.encode()[-LOG_BYTES:].decode(errors="ignore"))
            break
        kept.append(line)
        room -= size
    return "\n".join(reversed(kept))
