"""Whether two quantities are equal: a unit matters where both have one, a percentage is a hundredth."""

from collections.abc import Callable
from fractions import Fraction

from simplerl_trainer.rewards.judge import exact, units
from simplerl_trainer.rewards.judge.terms import Call, Num, Quantity, Term, is_expression


def same(gold: Term, answer: Term, equal: Callable[[Term, Term], bool]) -> bool:
    """`equal`: whether two values are."""
    (value, unit), (other, its) = _split(gold), _split(answer)
    if unit and its:
        return unit == its and equal(value, other)
    if units.PERCENT in (unit, its):
        percent, bare = (value, other) if unit else (other, value)
        if not is_expression(percent) or not is_expression(bare):
            return False
        hundredth = Call("/", (percent, Num(Fraction(100))))
        pair = (hundredth, bare) if unit else (bare, hundredth)
        if equal(*pair):
            return True
        number = exact.fraction(percent)
        return (number is None or abs(number) >= 1) and equal(value, other)
    return equal(value, other)


def _split(term: Term) -> tuple[Term, units.Unit]:
    return (term.value, term.unit) if isinstance(term, Quantity) else (term, ())
