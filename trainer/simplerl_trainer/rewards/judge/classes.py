"""Answers to one question sorted by what they say: `1/2` and `0.5` are one answer.

The cost is bounded by lengths and counts rather than by a clock, so that the same answers always fall into the same
classes: what is long, or needs sympy, is told apart by its text.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from simplerl_trainer.rewards.judge import judging

LONGEST = 200
"""Characters of an answer that is compared by what it says."""
MOST_COMPARED = 8
"""Classes that an answer is compared with, the oldest ones, beside those of its text and of its number."""

_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")


def classes(answers: Sequence[str]) -> list[int]:
    """For each answer the number of its class, by first appearance: more answers change no class before them."""
    by_text: dict[str, int] = {}
    by_number: dict[Decimal, int] = {}
    first: list[str] = []
    found = []
    for answer in answers:
        text = answer.strip()
        if (known := by_text.get(text)) is None:
            number = Decimal(text) if _NUMBER.fullmatch(text) and text.isascii() else None
            known = by_number.get(number) if number is not None else None
            if known is None:
                known = _compared(text, first)
            if known == len(first):
                first.append(text)
            by_text[text] = known
            if number is not None:
                by_number.setdefault(number, known)
        found.append(known)
    return found


def _compared(text: str, first: Sequence[str]) -> int:
    """The class whose first answer says the same; a new one where there is none."""
    if len(text) <= LONGEST:
        for i, other in enumerate(first[:MOST_COMPARED]):
            if len(other) <= LONGEST and judging.alike(other, text):
                return i
    return len(first)
