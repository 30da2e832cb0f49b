"""Whether two equations or inequalities are equal: side by side, as multiples of each other, or by their solutions."""

from collections.abc import Callable

from mpmath import mp

from simplerl_trainer.rewards.judge import inequalities, numeric, sets
from simplerl_trainer.rewards.judge.comparison import collections
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.terms import (
    REALS,
    Bare,
    Call,
    Quantity,
    Relation,
    Seq,
    SetOf,
    Term,
    is_expression,
    negated,
    variables,
)


class Slow(Exception):
    """The answers can be compared by sympy only, which may take any time."""


def same(gold: Term, answer: Term, equal: Callable[[Term, Term], bool], *, quick: bool) -> bool:
    """Raises Slow where `quick` and only solving them can tell."""
    if not isinstance(gold, Relation) or not isinstance(answer, Relation):
        return False
    if gold.signs == answer.signs and collections.ordered(gold.terms, answer.terms, equal):
        return True
    if len(gold.signs) == len(answer.signs) == 1:
        first, second = _difference(gold), _difference(answer)
        if first is not None and second is not None and first[0] == second[0]:
            ratio = _constant_ratio(first[1], second[1])
            if ratio is not None and (ratio > 0 or first[0] in ("=", "!=")):
                return True
    return same_solution(gold, answer, quick=quick)


def same_solution(gold: Term, answer: Term, *, quick: bool) -> bool:
    """By the sets of numbers for which they hold. Raises Slow where `quick`."""
    names = {n for t in (gold, answer) if isinstance(t, Relation) for n in variables(t)}
    if len(names) != 1 or not all(_solvable(t) for t in (gold, answer)):
        return False
    if quick:
        raise Slow
    (name,) = names
    with mp.workdps(numeric.digits(gold, answer)):
        found = [inequalities.solved(t, name) if isinstance(t, Relation) else sets.real_set(t) for t in (gold, answer)]
        return found[0] is not None and found[1] is not None and found[0].same(found[1])


def _difference(relation: Relation) -> tuple[str, Term] | None:
    """`l < r` and `r > l` as the sign `<` and `l - r`."""
    left, right = (t.value if isinstance(t, Quantity) else t for t in relation.terms)
    if not is_expression(left) or not is_expression(right):
        return None
    (sign,) = relation.signs
    if sign in (">", ">="):
        return sign.replace(">", "<"), Call("+", (right, negated(left)))
    return sign, Call("+", (left, negated(right)))


def _constant_ratio(first: Term, second: Term) -> numeric.Value | None:
    """The number that the second is times the first everywhere; None where there is none, or it is 0."""
    names = variables(first)
    if names != variables(second) or not names:
        return None
    ratios = []
    with mp.workdps(numeric.digits(first, second)):
        for place in numeric.places(names, first, second):
            try:
                above, below = numeric.value(second, place), numeric.value(first, place)
            except Undefined:
                continue
            if not numeric.is_real(above) or not numeric.is_real(below) or above == 0 or below == 0:
                continue
            ratios.append(above / below)
        if len(ratios) < 3 or not all(numeric.same(ratios[0], r) for r in ratios):
            return None
        return ratios[0]


def _solvable(term: Term) -> bool:
    if isinstance(term, Relation):
        return all(s in ("<", "<=", ">", ">=", "!=") for s in term.signs) and all(is_expression(t) for t in term.terms)
    return isinstance(term, SetOf | Seq | Bare) or term == REALS
