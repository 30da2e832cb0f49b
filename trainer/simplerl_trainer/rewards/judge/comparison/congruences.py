"""Whether two congruences are equal: of one modulus, by what is left when they are divided by it."""

from collections.abc import Callable

from simplerl_trainer.rewards.judge import exact
from simplerl_trainer.rewards.judge.terms import Congruence, Term, is_expression


def same(gold: Term, answer: Term, equal: Callable[[Term, Term], bool]) -> bool:
    """A modulus may be missing in the gold one, a remainder: `2^{100} \\equiv 3 \\pmod 7` answers 3, and never 10."""
    if not isinstance(answer, Congruence):
        return False
    if not isinstance(gold, Congruence):
        return is_expression(gold) and equal(gold, answer.terms[-1])
    if not equal(gold.modulus, answer.modulus):
        return False
    *left, remainder = gold.terms
    *others, its = answer.terms
    if left and others and not equal(left[0], others[0]):
        return False
    first, second, modulus = exact.fraction(remainder), exact.fraction(its), exact.fraction(gold.modulus)
    if first is None or second is None or not modulus:
        return equal(remainder, its)
    return ((first - second) / modulus).denominator == 1
