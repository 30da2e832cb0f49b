"""Rational numbers worked out exactly, and only as far as they stay small."""

import math
from fractions import Fraction

from simplerl_trainer.rewards.judge.terms import Call, Huge, Num, Term

LARGEST_BITS = 60_000
"""Of numerator and denominator together; 10000! has 120,000."""
LARGEST_FACTORIAL = 3000


class Undefined(Exception):
    """A value does not exist: a division by zero, the logarithm of zero."""


def fraction(term: Term) -> Fraction | None:
    """The rational number that a term is; None where it is not one, or not plainly.

    Raises Undefined, or Huge where working it out would take too long.
    """
    if isinstance(term, Num):
        return term.value
    if not isinstance(term, Call):
        return None
    args = []
    for arg in term.args:
        value = fraction(arg)
        if value is None:
            return None
        args.append(value)
    return _applied(term.name, args)


def _applied(name: str, args: list[Fraction]) -> Fraction | None:
    match name, args:
        case "+", _:
            return _bounded(sum(args, Fraction(0)))
        case "*", _:
            return _bounded(math.prod(args, start=Fraction(1)))
        case "/", [above, below]:
            if below == 0:
                raise Undefined("it divides by zero")
            return _bounded(above / below)
        case "^", [base, exponent]:
            return power(base, exponent)
        case "sqrt", [value]:
            return _root(value, 2)
        case "root", [value, degree] if degree.denominator == 1 and 1 < degree < 100:
            return _root(value, int(degree))
        case "abs", [value]:
            return abs(value)
        case "floor", [value]:
            return Fraction(math.floor(value))
        case "ceil", [value]:
            return Fraction(math.ceil(value))
        case "factorial", [value] if value.denominator == 1 and value >= 0:
            if value > LARGEST_FACTORIAL:
                raise Huge(f"the factorial of {_short(value)} is too large to be worked out")
            return Fraction(math.factorial(int(value)))
        case "binom", [above, below] if above.denominator == below.denominator == 1 and above >= 0 and below >= 0:
            if above > LARGEST_FACTORIAL:
                raise Huge(f"a binomial of {_short(above)} is too large to be worked out")
            return Fraction(math.comb(int(above), int(below)))
        case ("gcd" | "lcm") as which, _ if all(a.denominator == 1 for a in args):
            return Fraction((math.gcd if which == "gcd" else math.lcm)(*map(int, args)))
        case "max", _:
            return max(args)
        case "min", _:
            return min(args)
    return None


def power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Raises Undefined and Huge as `fraction`."""
    if exponent.denominator != 1:
        if exponent.denominator > 100 or abs(exponent.numerator) > 1000:
            return None
        root = _root(base, exponent.denominator)
        return None if root is None else power(root, Fraction(exponent.numerator))
    if base == 0 and exponent < 0:
        raise Undefined("it divides by zero")
    if base in (0, 1, -1):
        return base ** int(exponent % 2 + 2) if exponent else Fraction(1)
    bits = abs(exponent) * (abs(base.numerator).bit_length() + base.denominator.bit_length())
    if bits > LARGEST_BITS:
        raise Huge(f"a power with the exponent {_short(exponent)} is too large to be worked out")
    return base ** int(exponent)


def _root(value: Fraction, degree: int) -> Fraction | None:
    if value < 0:
        if degree % 2 == 0:
            return None
        found = _root(-value, degree)
        return None if found is None else -found
    above, below = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    return None if above is None or below is None else Fraction(above, below)


def _whole_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(value)
    else:
        if value.bit_length() > 1000:
            return None
        root = round(value ** (1 / degree))
    for candidate in (root, root + 1, root - 1):
        if candidate**degree == value:
            return candidate
    return None


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > 4 * LARGEST_BITS:
        raise Huge("a number is too large to be worked out")
    return value


def _short(value: Fraction) -> str:
    # Python refuses to print integers of more than 4300 digits
    return str(value) if value.numerator.bit_length() < 200 else f"{value.numerator.bit_length()} bits"
