"""Whether two expressions are equal: exactly where both are rational, else by their values at several places."""

from fractions import Fraction

from mpmath import mp, mpf

from simplerl_trainer.rewards.judge import exact, numeric
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.judgement import Tolerance
from simplerl_trainer.rewards.judge.terms import Term, variables


def same(gold: Term, answer: Term, tolerance: Tolerance | None) -> bool:
    """Raises Huge and Undefined."""
    first, second = exact.fraction(gold), exact.fraction(answer)
    if first is not None and second is not None:
        return first == second or _near(first, second, tolerance)
    names = variables(gold, answer)
    with mp.workdps(numeric.digits(gold, answer)):
        real, other, complex_only = 0, 0, True
        for place in numeric.places(names, gold, answer) if names else [{}]:
            try:
                left, right = numeric.value(gold, place), numeric.value(answer, place)
            except Undefined:
                if not names:
                    return False
                continue
            if names and not (numeric.is_real(left) and numeric.is_real(right)):
                other += numeric.same(left, right)
                complex_only = complex_only and numeric.same(left, right)
                continue
            if not numeric.same(left, right) and not _near_values(left, right, tolerance):
                return False
            real += 1
        return real > 0 or (other > 0 and complex_only)


def _near(gold: Fraction, answer: Fraction, tolerance: Tolerance | None) -> bool:
    if tolerance is None:
        return False
    bound = Fraction(tolerance.relative) * abs(gold) + Fraction(tolerance.absolute)
    # a float such as 0.01 is a little off what was meant
    return abs(gold - answer) <= bound * (1 + Fraction(1, 10**9))


def _near_values(gold: numeric.Value, answer: numeric.Value, tolerance: Tolerance | None) -> bool:
    if tolerance is None or mp.isinf(gold) or mp.isinf(answer):
        return False
    bound = mpf(tolerance.relative) * abs(gold) + mpf(tolerance.absolute)
    return bool(abs(gold - answer) <= bound * (1 + mpf(10) ** -9))
