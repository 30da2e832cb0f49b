"""Events: one for each phase and for each trouble, none for a job that stays where it is."""

from dataclasses import dataclass

from simplerl_api.status import Condition, Phase, Status
from simplerl_operator.decide.conditions import clip
from simplerl_operator.decide.reasons import Reason

NOTE_LENGTH = 1024

_WARNINGS = frozenset({
    Reason.UNSCHEDULABLE, Reason.IMAGE_PULL_FAILED, Reason.CONTAINER_CONFIG_ERROR, Reason.POD_CREATION_FAILED,
    Reason.VOLUME_PENDING, Reason.PODS_NOT_STARTING, Reason.CLUSTER_REJECTED, Reason.SUBMISSION_REFUSED,
    Reason.DRIVER_SILENT,
})  # fmt: skip

_SCALED = frozenset({
    Reason.ENGINES_SCALED, Reason.ENGINES_COMING, Reason.ENGINES_LEAVING, Reason.QUEUE_MANAGED
})  # fmt: skip
"""What the condition EnginesScaled says that is worth an Event, once it has said something else before."""

_IN_PASSING = frozenset({Phase.STARTING})
"""Phases that a job passes through in seconds, or else a warning tells why not."""


@dataclass(frozen=True)
class Happening:
    """Something that people may want to know when they look back."""

    reason: str
    message: str
    warning: bool = False


def between(before: Status, after: Status) -> list[Happening]:
    """What happened between two statuses that were written one after the other."""
    out: list[Happening] = []
    if before.start_time is None and after.start_time is not None and after.plan is not None and not after.plan.durable:
        out.append(
            Happening(
                "NotDurable",
                "there is no checkpoint.claimName: samples, checkpoints and the model go with the pods",
                True,
            )
        )
    was, now = _standing(before), _standing(after)
    scaled, to = _engines(before), _engines(after)
    if to is not None and to.reason in _SCALED and to.reason != (scaled.reason if scaled is not None else to.reason):
        out.append(Happening(to.reason, clip(to.message, NOTE_LENGTH)))
    if after.phase is not None and was[:2] != now[:2]:
        phase, reason, message = now
        warning = phase in (Phase.FAILED, Phase.RECOVERING) or reason in _WARNINGS or _refused(after)
        # the rest of what goes as it should stands in the status alone: each Event is one more write of a whole fleet
        if warning or (was[0] != phase and phase not in _IN_PASSING):
            out.append(Happening(reason, clip(message or f"phase {phase}", NOTE_LENGTH), warning))
    return out


def _standing(status: Status) -> tuple[str, str, str]:
    ready = next((c for c in status.conditions if c.type == "Ready"), None)
    return (status.phase or ""), (ready.reason if ready else ""), (ready.message if ready else "")


def _engines(status: Status) -> Condition | None:
    return next((c for c in status.conditions if c.type == "EnginesScaled"), None)


def _refused(status: Status) -> bool:
    return any(c.type == "Accepted" and c.status == "False" for c in status.conditions)
