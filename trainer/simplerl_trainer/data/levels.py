"""Which training questions are kept by their level."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Levels
from simplerl_trainer.data.questions import Question

_LEVEL = re.compile(r"\s*(?:level\s*)?([0-9]{1,4})(?:\.0+)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sifted:
    """Questions of the wanted levels, and how many were dropped."""

    questions: Sequence[Question]
    other_level: int
    unreadable_level: int
    """Questions without a level, or with one that is no number."""
    unreadable_example: str
    """One such level as it stands in its record; empty without any."""


def sift(questions: Sequence[Question], levels: Levels | None, key: str, field: str) -> Sifted:
    """The questions whose `key` holds a level from levels.min to levels.max.

    Raises TrainerFailure(INVALID_INPUT) where none is left.
    """
    if levels is None:
        return Sifted(questions, 0, 0, "")
    found = [(q, level(q.record.get(key))) for q in questions]
    kept = [q for q, value in found if value is not None and levels.min <= value <= levels.max]
    unreadable = [q for q, value in found if value is None]
    example = repr(unreadable[0].record.get(key, "absent"))[:80] if unreadable else ""
    if not kept:
        there = sorted({value for _, value in found if value is not None})
        seen = f"the levels are {', '.join(map(str, there[:20]))}" if there else f"{key} is {example} in the first"
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"none of the {len(questions)} questions of {field} has a level from {levels.min} to {levels.max} under "
            f"{key} ({seen}): correct data.levels or data.fields.level",
        )
    return Sifted(kept, len(questions) - len(kept) - len(unreadable), len(unreadable), example)


def level(value: Any) -> int | None:
    """The number of a level: of 5, 5.0, "5" and "Level 5" it is 5; None of anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if value >= 0 and value % 1 == 0 else None
    match = _LEVEL.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else None
