"""The judge: reads the answer, reads the gold one, compares them."""

import re
from decimal import Decimal

from simplerl_trainer.rewards.judge import answer, dialect, reading, text, units
from simplerl_trainer.rewards.judge.comparison import Comparison, Slow, binders
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.judgement import Judgement, Tolerance
from simplerl_trainer.rewards.judge.terms import Based, Call, Huge, Quantity, Term, Unreadable, is_expression, variables
from simplerl_trainer.rewards.outcome import Verdict

_PLAIN_NUMBER = re.compile(r"-?(?:[0-9]{1,400}|[0-9]{1,3}(?:,[0-9]{3}){1,100})(?:\.[0-9]{1,400})?")
_SPACE = re.compile(r"\s+")
_UNIT_LETTERS = re.compile(r"(.*[\d}])\s+([A-Za-z][A-Za-z\s*/^{}\d.\-]*)", re.DOTALL)


def judge(response: str, gold: str, tolerance: float | Tolerance | None = None, *, quick: bool = False) -> Judgement:
    """As `simplerl_trainer.rewards.judge.judge`; where `quick`, raises Slow rather than run sympy."""
    if isinstance(tolerance, int | float):
        tolerance = Tolerance(relative=tolerance)
    want = reading.gold(gold)
    found = reading.response(response)
    if tolerance is None and _PLAIN_NUMBER.fullmatch(want) and _PLAIN_NUMBER.fullmatch(found.text):
        equal = Decimal(want.replace(",", "")) == Decimal(found.text.replace(",", ""))
        return _decided(equal, found, want)
    try:
        return _judged(found, want, Comparison(tolerance, quick))
    except RecursionError:
        return _different(found, want, "they lie too deep in brackets to be compared")


def alike(one: str, other: str) -> bool:
    """Whether two answers that were read say the same; never where only sympy could tell."""
    try:
        return _judged(reading.Reading(other), one, Comparison(quick=True)).verdict is Verdict.EQUAL
    except (Slow, RecursionError):
        return False


def _judged(found: reading.Reading, want: str, comparison: Comparison) -> Judgement:
    gold_text = dialect.canonical(want)
    gold_term: Term | None = None
    try:
        gold_term = answer.read(gold_text)
    except Unreadable as e:
        shown = want if len(want) <= 200 else want[:200] + "…"
        return Judgement(
            Verdict.BAD_GOLD, found.text, f"the gold answer {shown!r} cannot be read: {e}", boxed=found.boxed
        )
    except Huge:
        pass  # it may equal by its text
    if not found.text:
        return Judgement(Verdict.NO_ANSWER, "", found.why, boxed=found.boxed)
    answer_text = dialect.canonical(found.text)
    if _squeezed(answer.stripped(gold_text)) == _squeezed(answer.stripped(answer_text)):
        return _decided(True, found, want)
    if (told := _by_text(gold_text, answer_text)) is not None:
        return _decided(told, found, want)
    if not answer.stripped(answer_text):
        return Judgement(Verdict.NO_ANSWER, "", "its answer is empty", boxed=found.boxed)
    try:
        answer_term = answer.read(answer_text)
        if gold_term is None:
            raise Huge("the gold number is too large to be worked out")
        return _decided(_equal(gold_term, answer_term, gold_text, answer_text, comparison), found, want)
    except Unreadable as e:
        return _different(found, want, f"the answer cannot be read: {e}")
    except Undefined as e:
        return _different(found, want, str(e))
    except Huge as e:
        return Judgement(Verdict.TIMEOUT, found.text, f"it would take too long: {e}", boxed=found.boxed)


def _by_text(gold: str, given: str) -> bool | None:
    """The verdict where it depends on the texts alone."""
    # the name of a choice: C, (C), C) 12
    letter = text.letter(gold, followed=False) if text.choice(gold) else None
    if letter is not None:
        theirs = text.letter(given, followed=True)
        if theirs is not None:
            return letter == theirs
    elif text.choice(given) and (whole := text.letter(gold, followed=True)) is not None and len(gold) > 3:
        return whole == text.letter(given, followed=False)
    words = text.words(gold)
    if words is not None and not re.search(r"[^A-Za-z\s.,'!?]", text.unwrapped(gold)) and words == text.words(given):
        return True
    return None


def _equal(gold: Term, given: Term, gold_text: str, answer_text: str, comparison: Comparison) -> bool:
    for based, its_text in ((gold, answer_text), (given, gold_text)):
        if isinstance(based, Based) and re.fullmatch(r"[0-9A-Za-z]+", its_text.strip()):
            return based.digits.lstrip("0") == its_text.strip().upper().lstrip("0")
    if comparison.same(gold, given):
        return True
    if binders.holds(gold) or binders.holds(given):
        return False
    # 5 m is five metres where the other side has no variable
    if not variables(gold) and (measured := _measured(given, answer_text)) is not None:
        return comparison.equal(gold, measured)
    if not variables(given) and (measured := _measured(gold, gold_text)) is not None:
        return comparison.equal(measured, given)
    return False


def _measured(term: Term, its_text: str) -> Term | None:
    """A product of a number and letters that are units, as a quantity."""
    if not (isinstance(term, Call) and is_expression(term) and variables(term)):
        return None
    match = _UNIT_LETTERS.fullmatch(answer.stripped(its_text))
    if match is None or not all(len(w) > 1 or units.letter(w) for w in re.findall(r"[A-Za-z]+", match[2])):
        return None
    try:
        found = answer.read(match[1] + re.sub(r"[A-Za-z]+", lambda m: f"\\text{{{m[0]}}}", match[2]))
    except Unreadable:
        return None
    return found if isinstance(found, Quantity) else None


def _squeezed(canonical: str) -> str:
    # space between digits is not nothing: 5 7 is not 57
    return re.sub(r"(?<!\d) | (?!\d)", "", _SPACE.sub(" ", canonical))


def _decided(equal: bool, found: reading.Reading, want: str) -> Judgement:
    return Judgement(Verdict.EQUAL, found.text, boxed=found.boxed) if equal else _different(found, want, "")


def _different(found: reading.Reading, want: str, why: str) -> Judgement:
    shown = want if len(want) <= 200 else want[:200] + "…"
    return Judgement(
        Verdict.DIFFERENT, found.text, f"expected {shown}" + (f": {why}" if why else ""), boxed=found.boxed
    )


__all__ = ["Slow", "alike", "judge"]
