"""Whether two literals are equal, words or digits in a base: by what is written, never by a value."""

from simplerl_trainer.rewards.judge import exact
from simplerl_trainer.rewards.judge.terms import Based, Term, Text


def same(gold: Term, answer: Term) -> bool | None:
    """None where that does not tell."""
    match gold, answer:
        case Text(a), Text(b):
            return a == b
        case Based(), _:
            return _based(gold, answer)
        case _, Based():
            return _based(answer, gold)
    return None


def _based(based: Term, other: Term) -> bool:
    """`52_8` equals `52_8` and, where the other has no base, `52`: digits are compared, never converted."""
    assert isinstance(based, Based)
    digits = based.digits.lstrip("0") or "0"
    if isinstance(other, Based):
        return digits == (other.digits.lstrip("0") or "0") and based.base == other.base
    number = exact.fraction(other)
    return number is not None and number.denominator == 1 and digits == str(number)
