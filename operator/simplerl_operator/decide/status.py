"""From a look and a decision to the whole new status, and whether it is worth a write."""

from typing import Any

from simplerl_api.status import AttemptStatus, ClusterStatus, FailureStatus, Phase, Status, Termination
from simplerl_operator import clock
from simplerl_operator.decide import figures, losses
from simplerl_operator.decide.conditions import MESSAGE_LENGTH, clip, conditions
from simplerl_operator.decide.decision import Decision
from simplerl_operator.observe import pods
from simplerl_operator.observe.observation import Observation

LOG_BYTES = 4096
MAX_ATTEMPTS = 5
MAX_TERMINATIONS = 20
_FIGURES = ("training", "evaluations", "checkpoint", "model", "versions", "summary")
"""Parts of the status that change with every step: written at most every so many seconds."""


def compose(seen: Observation, decision: Decision, now: float) -> Status:
    """The status after a decision. Counters and clocks come from the status before; `now` in seconds since 1970."""
    before = seen.job.status
    if decision.phase is None:
        return before
    fields: dict[str, Any] = {name: getattr(before, name) for name in Status.model_fields}
    fields |= {
        "observed_generation": seen.job.generation,
        "phase": decision.phase,
        "conditions": conditions(seen.job, decision, now),
    }
    if decision.start:
        fields |= {
            "start_time": clock.rfc3339(now),
            "attempt": 1,
            "attempt_start_time": clock.rfc3339(now),
            "plan": seen.job.plan,
        }
    if decision.admitted:
        fields["admitted_time"] = clock.rfc3339(now)
    if seen.job.started:
        fields["cluster"] = _cluster(seen, decision)
    progress = losses.last_document(seen)
    if progress is not None and (decision.over or decision.submitted or decision.queued):
        fields |= figures.read(progress, before, now)
    if decision.over:
        fields |= _ending(seen, decision, now, fields)
    status = Status(**fields)
    model = seen.job.spec.model if seen.job.spec is not None else None
    return status.model_copy(update={"summary": figures.summary(status, model)})


def worth_writing(before: Status, after: Status, now: float, figures_seconds: float) -> float | None:
    """Seconds until the new status may be written: 0 is at once, None is never.

    Phases, conditions and the like are written at once, figures every `figures_seconds`, a time alone never.
    """
    if _without(after, (*_FIGURES, "last_progress_time")) != _without(before, (*_FIGURES, "last_progress_time")):
        return 0.0
    if all(getattr(before, name) == getattr(after, name) for name in _FIGURES):
        return None
    if before.training is None:
        return 0.0
    return max(0.0, clock.seconds(before.training.last_update_time) + figures_seconds - now)


def _without(status: Status, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(status, name) for name in Status.model_fields if name not in names}


def _cluster(seen: Observation, decision: Decision) -> ClusterStatus | None:
    """What is known of the RayCluster; once it is there, what it was stays when it goes."""
    before = seen.job.status.cluster
    if seen.cluster is None or seen.cluster.owner_uid != seen.job.uid or decision.over:
        return before
    if decision.queued:
        return ClusterStatus(name=seen.cluster.name, uid=seen.cluster.uid, desired_workers=seen.wanted_pods - 1)
    submission = before.submission_id if before else None
    pod_set = before.pod_set if before else None
    if pod_set is None and seen.ready:
        pod_set = pods.set_digest(seen.pods)
    ready = sum(pod.ready for pod in seen.workers)
    if seen.job.submitted and before is not None:
        ready = before.ready_workers  # a readiness probe that misses a beat is no news of a running job
    return ClusterStatus(
        name=seen.cluster.name,
        uid=seen.cluster.uid,
        head_service=seen.cluster.head_service or (before.head_service if before else None),
        submission_id=seen.cluster.name if decision.submitted else submission,
        ready_workers=ready,
        desired_workers=seen.wanted_pods - 1,
        pod_set=pod_set,
    )


def _ending(seen: Observation, decision: Decision, now: float, fields: dict[str, Any]) -> dict[str, Any]:
    training = fields["training"]
    ended = AttemptStatus(
        number=seen.job.attempt,
        reason=decision.reason,
        message=clip(decision.message, MESSAGE_LENGTH),
        last_step=training.step if training is not None else 0,
        terminations=_terminations(seen),
    )
    out: dict[str, Any] = {
        "completion_time": clock.rfc3339(now),
        "attempts": [*seen.job.status.attempts, ended][-MAX_ATTEMPTS:],
    }
    if decision.phase is Phase.FAILED:
        out["failure"] = FailureStatus(
            reason=decision.reason, message=clip(decision.message, MESSAGE_LENGTH), log=log_tail(decision.log)
        )
    return out


def _terminations(seen: Observation) -> list[Termination]:
    found = [t for pod in pods.ordered((*seen.lost, *seen.pods)) for t in pod.terminations]
    return list(dict.fromkeys(found))[:MAX_TERMINATIONS]


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
