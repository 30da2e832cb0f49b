"""The judge of one mathematical answer, on math-verify.

Comparing answers runs sympy, which may take any time for some of them (`10^{10^{10}}`): `judge` belongs in a process
that can be killed (see workers). `quick` decides the plain cases at once, with the same verdicts.
"""

import logging
import re
from decimal import Decimal
from functools import cache
from typing import Any

from simplerl_api.spec.rewards import MathReward
from simplerl_trainer.rewards.judge.judgement import Judgement
from simplerl_trainer.rewards.outcome import Outcome, Verdict


def score(judgement: Judgement, rules: MathReward) -> float:
    """The score of a judgement."""
    if judgement.verdict is Verdict.EQUAL:
        return rules.correct
    if judgement.verdict is Verdict.NO_ANSWER and not judgement.boxed and rules.unboxed is not None:
        return rules.unboxed
    return rules.wrong


def outcome(response: str, gold: str, rules: MathReward) -> Outcome:
    """The outcome of a response; may take any time."""
    return _outcome(judge(response, gold, rules), rules)


def quick_outcome(response: str, gold: str, rules: MathReward) -> Outcome | None:
    """The outcome where none needs sympy, otherwise None."""
    judgement = quick(response, gold, rules)
    return None if judgement is None else _outcome(judgement, rules)


def warm_up(rules: MathReward) -> None:
    """The first answer of each kind takes up to half a second of imports and grammar tables."""
    for response in ("\\boxed{\\frac{1}{2}+x}", "so it is 1/2", "the answer is $0.5$"):
        judge(response, "\\frac{1}{2}+x", rules.model_copy(update={"unboxed": None}))


def _outcome(judgement: Judgement, rules: MathReward) -> Outcome:
    return Outcome(score(judgement, rules), judgement.verdict, judgement.extracted, judgement.why)


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
