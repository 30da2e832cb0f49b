"""Whether two collections are equal: matrices, tuples, intervals, sets and lists."""

from collections.abc import Callable, Sequence

from mpmath import mp

from simplerl_trainer.rewards.judge import numeric, sets
from simplerl_trainer.rewards.judge.terms import REALS, Bare, Matrix, Seq, SetOf, Term, is_expression

MOST_MEMBERS = 300
"""Of a list whose order does not matter: each may be compared with each."""


def same(gold: Term, answer: Term, equal: Callable[[Term, Term], bool]) -> bool:
    """`equal`: whether two members are."""
    match gold, answer:
        case Matrix(a), Matrix(b):
            return len(a) == len(b) and all(ordered(x, y, equal) for x, y in zip(a, b, strict=True))
        case Matrix(rows), (Seq("(", ")", items) | Bare(items)):
            return all(len(r) == 1 for r in rows) and ordered([r[0] for r in rows], items, equal)
        case Seq("(", ")", items), Matrix(rows):
            return all(len(r) == 1 for r in rows) and ordered(items, [r[0] for r in rows], equal)
    if _is_set(gold) or _is_set(answer):
        return _same_sets(gold, answer, equal)
    match gold, answer:
        case Seq("{", "}", a), (Seq("{", "}", b) | Bare(b)):
            return unordered(_distinct(a, equal), _distinct(b, equal), equal)
        case Seq(a, b, items), Seq(c, d, others):
            return (a, b) == (c, d) and ordered(items, others, equal)
        case Seq("(", ")", items), Bare(others):
            return ordered(items, others, equal)
        case Bare(items), (Bare(others) | Seq("(", ")", others)):
            return unordered(items, others, equal)
        case Bare(items), Seq("{", "}", others):
            return unordered(_distinct(items, equal), others, equal)
        case (Seq("{", "}", (only,)), other) | (other, Seq("{", "}", (only,))) if is_expression(other):
            return equal(only, other)
    return False


def ordered(gold: Sequence[Term], answer: Sequence[Term], equal: Callable[[Term, Term], bool]) -> bool:
    """Whether each member equals the one at its place."""
    return len(gold) == len(answer) and all(equal(g, a) for g, a in zip(gold, answer, strict=True))


def unordered(gold: Sequence[Term], answer: Sequence[Term], equal: Callable[[Term, Term], bool]) -> bool:
    """Whether each member equals another one of the answer."""
    if len(gold) != len(answer) or len(gold) > MOST_MEMBERS:
        return False
    left = list(answer)
    for item in gold:
        found = next((i for i, other in enumerate(left) if equal(item, other)), None)
        if found is None:
            return False
        del left[found]
    return True


def _same_sets(gold: Term, answer: Term, equal: Callable[[Term, Term], bool]) -> bool:
    with mp.workdps(numeric.digits(gold, answer)):
        first, second = sets.real_set(gold), sets.real_set(answer)
        if first is not None and second is not None:
            return first.same(second)
    pieces = _pieces(gold), _pieces(answer)
    if len(pieces[0]) < 2 or len(pieces[1]) < 2:
        return False
    return unordered(*pieces, equal)


def _is_set(term: Term) -> bool:
    return isinstance(term, SetOf) or term == REALS


def _pieces(term: Term) -> list[Term]:
    """The members of a union."""
    match term:
        case SetOf("cup", left, right):
            return [*_pieces(left), *_pieces(right)]
        case Bare(items):
            return list(items)
    return [term]


def _distinct(items: Sequence[Term], equal: Callable[[Term, Term], bool]) -> list[Term]:
    if len(items) > MOST_MEMBERS:
        return list(items)
    found: list[Term] = []
    for item in items:
        if not any(equal(item, other) for other in found):
            found.append(item)
    return found
