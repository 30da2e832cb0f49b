"""Sets of real numbers: intervals, single numbers, and what is made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from simplerl_trainer.rewards.judge import numeric
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.numeric import Value
from simplerl_trainer.rewards.judge.terms import (
    INFINITY,
    REALS,
    Bare,
    Relation,
    Seq,
    SetOf,
    Sym,
    Term,
    is_expression,
    negated,
    parts,
    variables,
)

MOST_PIECES = 60
"""Of a set: each is compared with each."""
MINUS_INFINITY = negated(INFINITY)


@dataclass(frozen=True, slots=True)
class RealSet:
    """Which points are in it, and which gaps before, between and after them."""

    points: tuple[Value, ...]
    """Growing."""
    at: tuple[bool, ...]
    gaps: tuple[bool, ...]
    """One more than points."""

    def same(self, other: "RealSet") -> bool:
        return (
            self.at == other.at
            and self.gaps == other.gaps
            and all(numeric.same(a, b) for a, b in zip(self.points, other.points, strict=True))
        )


def interval(low: Value, high: Value, *, low_in: bool, high_in: bool) -> RealSet:
    finite_low, finite_high = not _infinite(low), not _infinite(high)
    if finite_low and finite_high and low >= high:
        return (
            RealSet((low,), (True,), (False, False))
            if low == high and low_in and high_in
            else RealSet((), (), (False,))
        )
    points: list[Value] = []
    at: list[bool] = []
    gaps: list[bool] = [True]
    if finite_low:
        points, at, gaps = [low], [low_in], [False, True]
    if finite_high:
        points, at, gaps = [*points, high], [*at, high_in], [*gaps, False]
    return RealSet(tuple(points), tuple(at), tuple(gaps))


def combined(left: RealSet, right: RealSet, rule: Callable[[bool, bool], bool]) -> RealSet:
    """The numbers that are in it by the rule, without points that make no difference."""
    points: list[Value] = []
    for point in sorted((*left.points, *right.points)):
        if not points or not numeric.same(points[-1], point):
            points.append(point)
    ends = [None, *points, None]
    gaps = [rule(_in_gap(left, a, b), _in_gap(right, a, b)) for a, b in pairwise(ends)]
    at = [rule(_at(left, p), _at(right, p)) for p in points]
    kept = [i for i in range(len(points)) if not gaps[i] == at[i] == gaps[i + 1]]
    return RealSet(tuple(points[i] for i in kept), tuple(at[i] for i in kept), (*(gaps[i] for i in kept), gaps[-1]))


_RULES: dict[str, Callable[[bool, bool], bool]] = {
    "cup": lambda a, b: a or b, "cap": lambda a, b: a and b, "setminus": lambda a, b: a and not b,
}  # fmt: skip


def real_set(term: Term) -> RealSet | None:
    """The set that a term stands for; None where it is none, or none of known numbers, or of too many pieces."""
    if sum(isinstance(p, SetOf | Seq) for p in parts(term)) > MOST_PIECES:
        return None
    if term == REALS or term == Sym("R"):
        return RealSet((), (), (True,))
    match term:
        case SetOf(name, left, right):
            first, second = real_set(left), real_set(right)
            return None if first is None or second is None else combined(first, second, _RULES[name])
        case Seq("{", "}", items):
            found = RealSet((), (), (False,))
            for item in items:
                value = _number(item)
                if value is None or _infinite(value):
                    return None
                found = combined(found, RealSet((value,), (True,), (False, False)), _RULES["cup"])
            return found
        case Seq(left_sign, right_sign, (low, high)):
            ends = _number(low), _number(high)
            if ends[0] is None or ends[1] is None:
                return None
            return interval(ends[0], ends[1], low_in=left_sign == "[", high_in=right_sign == "]")
        case Bare(items):
            pieces = [real_set(item) for item in items]
            if any(p is None for p in pieces) or not all(isinstance(i, Seq | SetOf) for i in items):
                return None
            found = RealSet((), (), (False,))
            for part in pieces:
                assert part is not None
                found = combined(found, part, _RULES["cup"])
            return found
    return None


def of_relation(term: Relation) -> tuple[str, Term] | None:
    """The variable of a relation such as `a <= x < b`, `x > 3` or `x in S`, and its set as a term; None for others."""
    terms, signs = term.terms, term.signs
    if len(signs) == 1 and signs[0] == "in" and isinstance(terms[0], Sym):
        return terms[0].name, terms[1]
    if len(signs) == 1 and signs[0] == "!=" and isinstance(terms[0], Sym):
        return terms[0].name, SetOf("setminus", REALS, Seq("{", "}", (terms[1],)))
    if len(signs) == 1 and signs[0] in _OPPOSITE:
        left, right = terms
        if isinstance(left, Sym) and left.name not in variables(right) and left.name in variables(left):
            return left.name, _half(signs[0], right)
        if isinstance(right, Sym) and right.name not in variables(left) and right.name in variables(right):
            return right.name, _half(_OPPOSITE[signs[0]], left)
    if len(signs) == 2 and isinstance(terms[1], Sym) and terms[1].name not in variables(terms[0], terms[2]):
        first, second = signs
        if first in ("<", "<=") and second in ("<", "<="):
            return terms[1].name, Seq(_left(first), _right(second), (terms[0], terms[2]))
        if first in (">", ">=") and second in (">", ">="):
            return terms[1].name, Seq(_left(second), _right(first), (terms[2], terms[0]))
    return None


_OPPOSITE = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _half(sign: str, end: Term) -> Term:
    if sign in ("<", "<="):
        return Seq("(", _right(sign), (MINUS_INFINITY, end))
    return Seq(_left(sign), ")", (end, INFINITY))


def _left(sign: str) -> str:
    return "[" if "=" in sign else "("


def _right(sign: str) -> str:
    return "]" if "=" in sign else ")"


def _number(term: Term) -> Value | None:
    if not is_expression(term) or variables(term):
        return None
    try:
        value = numeric.value(term, {})
    except Undefined:
        return None
    return value if numeric.is_real(value) else None


def _infinite(value: Value) -> bool:
    return bool(abs(value) == float("inf"))


def _at(found: RealSet, point: Value) -> bool:
    for i, p in enumerate(found.points):
        if numeric.same(p, point):
            return found.at[i]
    return found.gaps[sum(p < point for p in found.points)]


def _in_gap(found: RealSet, low: Value | None, high: Value | None) -> bool:
    """Whether all between two neighbours of a finer division is in it."""
    if low is None:
        return found.gaps[0]
    return found.gaps[sum(p < low or numeric.same(p, low) for p in found.points)]
