"""Terms worked out to many digits, with numbers in place of their variables."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mpmath import libmp, mp, mpc, mpf

from simplerl_trainer.rewards.judge import exact
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.terms import Call, Huge, Num, Sym, Term, parts

DIGITS = 60
MOST_DIGITS = 400
"""Of a number beside functions and irrational ones, which take long to work out to more."""
ROUNDED = 20
"""Digits that rounding may spoil. Two values that agree to all others are equal: chance agreement of so many is beyond
what anybody meets, and no number that is written out has as many."""
_SMALL = 1e-5
"""Below, a value may be what rounding left of zero."""
LARGEST_EXPONENT = 200_000
"""Of two, that a value may have."""

Value = Any
"""A real or complex number of mpmath, which has no types."""


def digits(*terms: Term) -> int:
    """The digits to work with: more than those of any number in the terms. Raises Huge."""
    most = max((p.digits for t in terms for p in parts(t) if isinstance(p, Num)), default=0)
    if most > MOST_DIGITS:
        raise Huge(f"a number of more than {MOST_DIGITS} digits is compared with rational ones only")
    return DIGITS + most


def value(term: Term, where: Mapping[str, Value]) -> Value:
    """A term's value at a place, under mpmath's current precision. Raises Undefined and Huge."""
    found = _value(term, where)
    if isinstance(found, mpc) and (found.imag == 0 or abs(found.imag) < abs(found.real) * _epsilon()):
        found = found.real
    if found and abs(found) < _SMALL:
        found = _without_noise(found, term, where)
    if not mp.isfinite(found) and not (isinstance(found, mpf) and mp.isinf(found) and _names_infinity(term)):
        raise Undefined("it is not finite")
    return found


def _without_noise(found: Value, term: Term, where: Mapping[str, Value]) -> Value:
    """Zero where all digits are what rounding left: with more digits they are others."""
    with mp.workdps(mp.dps + 50):
        again = _value(term, where)
        return found if abs(again - found) <= abs(again) * mpf(10) ** -10 else mpf(0)


def _names_infinity(term: Term) -> bool:
    return any(p == Sym("inf") for p in parts(term))


def _value(term: Term, where: Mapping[str, Value]) -> Value:
    if isinstance(term, Num):
        return mpf(term.value.numerator) / term.value.denominator
    if isinstance(term, Sym):
        match term.name:
            case "pi":
                return +mp.pi
            case "e":
                return +mp.e
            case "i":
                return mpc(0, 1)
            case "inf":
                return mp.inf
        return where[term.name]
    if not isinstance(term, Call):
        raise Undefined("it is no number")
    if term.name == "^":
        return _power(term.args[0], term.args[1], where)
    if term.name == "root":
        return _real_root(_value(term.args[0], where), term.args[1], where)
    args = [_value(a, where) for a in term.args]
    try:
        return _bounded(_applied(term.name, args))
    except (ZeroDivisionError, ValueError, libmp.NoConvergence, OverflowError, MemoryError, TypeError) as e:
        # mpmath raises these at poles, for complex numbers where it wants real ones, and where it gives up
        raise Undefined(f"{term.name} has no value there") from e


def _applied(name: str, args: list[Value]) -> Value:
    first = args[0]
    match name:
        case "+":
            return sum(args[1:], first)
        case "*":
            return first * args[1] if len(args) == 2 else mp.fprod(args)
        case "/":
            return first / args[1]
        case "sqrt":
            return mp.sqrt(first)
        case "cbrt":
            return _odd_root(first, 3)
        case "abs":
            return abs(first)
        case "floor" | "ceil":
            # a whole number that rounding left a little below itself
            near = mp.nint(first.real)
            if abs(first - near) < _epsilon():
                return near
            return mp.floor(first) if name == "floor" else mp.ceil(first)
        case "factorial":
            _small(first)
            return mp.factorial(first)
        case "binom":
            _small(first)
            _small(args[1])
            return mp.binomial(first, args[1])
        case "exp":
            return _exponential(first)
        case "ln" | "log":
            # log x is the natural one or that to base 10: it is the same one on both sides
            return mp.log(first)
        case "log10":
            return mp.log(first) / mp.log(10)
        case "logb":
            return mp.log(first) / mp.log(args[1])
        case "degree":
            return first * mp.pi / 180
        case "max" | "min":
            return (max if name == "max" else min)(args)
        case "sin" | "cos" | "tan" | "cot" | "sec" | "csc" | "sinh" | "cosh" | "tanh":
            _small(first)
            return getattr(mp, name)(first)
        case "arcsin" | "arccos" | "arctan" | "arccot" | "arcsec" | "arccsc":
            return getattr(mp, "a" + name[3:])(first)
    raise Undefined(f"{name} has no value")


def _power(base_term: Term, exponent_term: Term, where: Mapping[str, Value]) -> Value:
    try:
        exponent = exact.fraction(exponent_term)
    except Huge as e:
        raise Huge(str(e)) from e
    base = _value(base_term, where)
    raised = _value(exponent_term, where)
    if base == 0:
        if mp.re(raised) < 0 or mp.im(raised) != 0:
            raise Undefined("it divides by zero")
        return mpf(1) if raised == 0 else mpf(0)
    if not mp.isfinite(base) or not mp.isfinite(raised):
        raise Undefined("it is not finite")
    size = abs(raised) * abs(mp.log(base)) if base != 1 else mpf(0)
    if size > LARGEST_EXPONENT:
        raise Huge("a power is too large to be worked out")
    if exponent is not None and exponent.denominator % 2 == 1 and exponent.denominator > 1 and _is_negative(base):
        # the real root: (-8)^{1/3} is -2 at school
        root = _odd_root(base, exponent.denominator)
        return root ** int(exponent.numerator)
    if exponent is not None and exponent.denominator == 1:
        return base ** int(exponent)
    return base**raised


def _real_root(base: Value, degree_term: Term, where: Mapping[str, Value]) -> Value:
    degree = exact.fraction(degree_term)
    if degree is not None and degree.denominator == 1 and 0 < degree < 1000:
        if degree % 2 == 1 and _is_negative(base):
            return _odd_root(base, int(degree))
        return mp.root(base, int(degree))
    return base ** (1 / _value(degree_term, where))


def _odd_root(base: Value, degree: int) -> Value:
    return -mp.root(-base, degree) if _is_negative(base) else mp.root(base, degree)


def _is_negative(number: Value) -> bool:
    return mp.im(number) == 0 and mp.re(number) < 0


def _exponential(exponent: Value) -> Value:
    if abs(exponent) > LARGEST_EXPONENT:
        raise Huge("a power is too large to be worked out")
    return mp.exp(exponent)


def _small(number: Value) -> None:
    if abs(number) > 10**9:
        raise Huge("a function of so large a number is not worked out")


def _bounded(number: Value) -> Value:
    if number and mp.isfinite(number) and abs(mp.mag(number)) > 4 * LARGEST_EXPONENT:
        raise Huge("a number is too large to be worked out")
    return number


def same(left: Value, right: Value) -> bool:
    """Whether two values agree to all digits but the last."""
    if mp.isinf(left) or mp.isinf(right):
        return bool(left == right)
    return bool(abs(left - right) <= max(abs(left), abs(right)) * _epsilon())


def _epsilon() -> Value:
    return mpf(10) ** (ROUNDED - mp.dps)


def is_real(number: Value) -> bool:
    return isinstance(number, mpf)


_PLACES = (
    (Fraction(1371, 1000), Fraction(611, 1000)),
    (Fraction(233, 1000), Fraction(171, 1000)),
    (Fraction(-1613, 1000), Fraction(-377, 1000)),
    (Fraction(3719, 1000), Fraction(1303, 1000)),
    (Fraction(-291, 1000), Fraction(713, 1000)),
    (Fraction(2903, 1000), Fraction(-877, 1000)),
)
"""First value and step from variable to variable. Any would do: expressions that are not equal agree at hardly any."""
_WHOLE_PLACES = ((2, 1), (7, 4), (12, -1), (5, 3), (9, 2), (16, 5))
_OF_WHOLE_NUMBERS = frozenset({"floor", "ceil", "factorial", "binom", "gcd", "lcm"})


def places(names: list[str], *terms: Term) -> list[dict[str, Value]]:
    """Where expressions of these variables are compared: at whole numbers where they hold functions of such."""
    whole = any(_wants_whole(p) for t in terms for p in parts(t))
    found = []
    for first, step in _WHOLE_PLACES if whole else _PLACES:
        numbers = [Fraction(first + i * step) for i in range(len(names))]
        if whole:
            numbers = [abs(n) + 1 for n in numbers]
        else:
            # powers of a step would meet: a little of i squared keeps four variables apart
            numbers = [n + Fraction(i * i * 57, 1000) for i, n in enumerate(numbers)]
        found.append({n: mpf(v.numerator) / v.denominator for n, v in zip(names, numbers, strict=True)})
    return found


def _wants_whole(term: Term) -> bool:
    match term:
        case Call("^", (Num(base), exponent)):
            return base < 0 and not isinstance(exponent, Num)
        case Call("^", (Call("*", (Num(base), Num())), exponent)):
            return base < 0 and not isinstance(exponent, Num)
        case Call(name, _):
            return name in _OF_WHOLE_NUMBERS
    return False
