"""The judge of one mathematical answer, on math-verify.

Comparing answers runs sympy, which may take any time for some of them (`10^{10^{10}}`): `judge` belongs in a process
that can be killed (see workers). `quick` decides the plain cases at once, with the same verdicts.
"""

import logging
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any

from simplerl_api.spec.rewards import MathReward


class Verdict(StrEnum):
    """What became of a response."""

    EQUAL = "equal"
    """Its answer is the gold answer."""
    DIFFERENT = "different"
    """Its answer is another one."""
    NO_ANSWER = "no_answer"
    """It holds no answer."""
    BAD_GOLD = "bad_gold"
    """The data set's answer cannot be read, so no response can be right."""
    TIMEOUT = "timeout"
    """Judging took longer than timeoutSeconds."""
    FAILED = "failed"
    """The judge's process ended."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge says of a response."""

    verdict: Verdict
    extracted: str = ""
    """The answer that was read from the response."""
    why: str = ""
    boxed: bool = False
    """Whether the response holds a box."""


def score(judgement: Judgement, rules: MathReward) -> float:
    """The score of a judgement."""
    if judgement.verdict is Verdict.EQUAL:
        return rules.correct
    if judgement.verdict is Verdict.NO_ANSWER and not judgement.boxed and rules.unboxed is not None:
        return rules.unboxed
    return rules.wrong


def judge(response: str, gold: str, rules: MathReward) -> Judgement:
    """Judges a response by the last complete box in it or, where there is none, by its last expression.

    `gold` is an answer, or a solution that ends in `#### answer` or holds a box. Where the rules score unboxed
    responses, a response without a box counts as without an answer. May take any time.
    """
    if (plain := quick(response, gold, rules)) is not None:
        return plain
    box = last_box(response)
    target = _parse(response if box is None else _boxed(box))
    extracted = _text(target) if box is None else box
    if not target:
        return Judgement(Verdict.NO_ANSWER, extracted, "no expression can be read from it", boxed=box is not None)
    want = gold_answer(gold)
    reference = _parse(_boxed(want))
    if not reference:
        return Judgement(Verdict.BAD_GOLD, extracted, f"the gold answer {want!r} cannot be read", boxed=box is not None)
    equal = _verify(reference, target)
    return _decided(equal, extracted, want, boxed=box is not None)


def quick(response: str, gold: str, rules: MathReward) -> Judgement | None:
    """The judgement where none needs sympy: no text, no box where one is asked for, or plain numbers on both sides;
    otherwise None."""
    box = last_box(response)
    if box is None and rules.unboxed is not None:
        return Judgement(Verdict.NO_ANSWER, why="there is no box in it")
    answer = (response if box is None else box).strip()
    if not answer:
        return Judgement(Verdict.NO_ANSWER, why="it is empty", boxed=box is not None)
    want = gold_answer(gold)
    if not want:
        return Judgement(Verdict.BAD_GOLD, answer, "the gold answer is empty", boxed=box is not None)
    number, reference = _plain_number(answer), _plain_number(want)
    if number is None or reference is None:
        return None
    return _decided(number == reference, answer, want, boxed=box is not None)


def gold_answer(gold: str) -> str:
    """The answer in a gold text: after its last `####`, else in its last box, else all of it."""
    _, mark, after = gold.rpartition("####")
    if mark:
        return after.strip()
    box = last_box(gold)
    return (gold if box is None else box).strip()


def last_box(text: str) -> str | None:
    """The content of the last `\\boxed{…}` whose braces are balanced; None where there is none."""
    end = len(text)
    while (start := text.rfind("\\boxed", 0, end)) >= 0:
        if (content := _braced(text, start + len("\\boxed"))) is not None:
            return content
        end = start
    return None


def _braced(text: str, start: int) -> str | None:
    """What stands between the brace that follows `start` and its partner."""
    opening = re.compile(r"\s*\{").match(text, start)
    if opening is None:
        return None
    depth = 0
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, opening.end() - 1):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)  # \{ and \} are printed braces
        if depth == 0:
            return text[opening.end() : brace.start()]
    return None


_PLAIN_NUMBER = re.compile(r"-?(?:[0-9]{1,15}|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4})")
_PLAIN_DECIMAL = re.compile(r"-?[0-9]{1,9}\.[0-9]{1,6}")
"""math-verify rounds to 6 decimal places, and its floats hold 15 digits: what is shorter is compared exactly."""


def _plain_number(text: str) -> Decimal | None:
    if _PLAIN_NUMBER.fullmatch(text) or _PLAIN_DECIMAL.fullmatch(text):
        return Decimal(text.replace(",", ""))
    return None


def _decided(equal: bool, extracted: str, want: str, *, boxed: bool) -> Judgement:
    if equal:
        return Judgement(Verdict.EQUAL, extracted, boxed=boxed)
    return Judgement(Verdict.DIFFERENT, extracted, f"expected {want}", boxed=boxed)


def _boxed(answer: str) -> str:
    return "\\boxed{" + answer + "}"


def _text(parsed: list[Any]) -> str:
    """How math-verify's parse says what it read: its last item is the text."""
    return parsed[-1] if parsed and isinstance(parsed[-1], str) else ""


@cache
def _math_verify() -> Any:
    import math_verify  # a third of a second and sympy, only in the reward processes

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of the time-outs that are switched off below
    return math_verify


def _parse(text: str) -> list[Any]:
    # its own time-out is a SIGALRM, which only a main thread can use and sympy's C parts ignore
    parsed: list[Any] = _math_verify().parse(text, parsing_timeout=None)
    return parsed


def _verify(reference: list[Any], target: list[Any]) -> bool:
    return bool(_math_verify().verify(reference, target, timeout_seconds=None))
