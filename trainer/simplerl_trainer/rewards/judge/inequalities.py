"""Inequalities of one variable, solved by sympy from terms that were read here: no text reaches sympy."""

from functools import cache, reduce
from operator import add, mul
from typing import Any

from mpmath import mpf

from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.sets import RealSet, combined, interval
from simplerl_trainer.rewards.judge.terms import Call, Num, Relation, Sym, Term, Unreadable

_DIGITS = 60


def solved(relation: Relation, variable: str) -> RealSet | None:
    """The real numbers for which it holds; None where they cannot be found. May take any time."""
    sympy = _sympy()
    x = sympy.Symbol("x", real=True)
    relations = {"<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge, "!=": sympy.Ne}
    found: Any = sympy.S.Reals
    try:
        for left, sign, right in zip(relation.terms, relation.signs, relation.terms[1:], strict=False):
            held = relations[sign](_expression(left, variable, x), _expression(right, variable, x))
            if held == sympy.true:
                continue
            if held == sympy.false:
                found = sympy.S.EmptySet
                continue
            part = sympy.solve_univariate_inequality(held, x, relational=False)
            found = found.intersect(part)
        return _real_set(found)
    except (NotImplementedError, ValueError, TypeError, AttributeError, KeyError, Undefined, Unreadable):
        return None  # sympy says so in these ways of what it cannot solve


@cache
def _sympy() -> Any:
    import sympy  # a third of a second, only where an inequality is solved

    return sympy


def _expression(term: Term, variable: str, x: Any) -> Any:
    sympy = _sympy()
    match term:
        case Num(value):
            return sympy.Rational(value.numerator, value.denominator)
        case Sym("pi"):
            return sympy.pi
        case Sym("e"):
            return sympy.E
        case Sym("inf"):
            return sympy.oo
        case Sym(name) if name == variable:
            return x
        case Call(name, args):
            inside = [_expression(a, variable, x) for a in args]
            match name, inside:
                case "+", _:
                    return reduce(add, inside)
                case "*", _:
                    return reduce(mul, inside)
                case "/", [above, below]:
                    return above / below
                case "^", [base, exponent]:
                    return base**exponent
                case "sqrt", [value]:
                    return sympy.sqrt(value)
                case "abs", [value]:
                    return sympy.Abs(value)
                case (("ln" | "log" | "exp"), [value]):
                    return (sympy.exp if name == "exp" else sympy.log)(value)
    raise Unreadable("it has functions that are not solved")


def _real_set(found: Any) -> RealSet | None:
    sympy = _sympy()
    if found == sympy.S.Reals:
        return RealSet((), (), (True,))
    if found == sympy.S.EmptySet:
        return RealSet((), (), (False,))
    if isinstance(found, sympy.Interval):
        return interval(
            _number(found.start), _number(found.end), low_in=not found.left_open, high_in=not found.right_open
        )
    parts: list[RealSet] = []
    if isinstance(found, sympy.FiniteSet):
        parts = [RealSet((_number(point),), (True,), (False, False)) for point in found.args]
    elif isinstance(found, sympy.Union):
        for arg in found.args:
            part = _real_set(arg)
            if part is None:
                return None
            parts.append(part)
    elif isinstance(found, sympy.Complement):
        whole, less = _real_set(found.args[0]), _real_set(found.args[1])
        if whole is None or less is None:
            return None
        return combined(whole, less, lambda a, b: a and not b)
    else:
        return None
    return reduce(lambda a, b: combined(a, b, lambda p, q: p or q), parts)


def _number(value: Any) -> Any:
    sympy = _sympy()
    if value in (sympy.oo, -sympy.oo):
        return mpf("inf") if value == sympy.oo else mpf("-inf")
    return mpf(str(value.evalf(_DIGITS)))
