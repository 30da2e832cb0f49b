"""Integrals, sums, products and limits: none is worked out, two are the same by their members.

Before answers are compared, each of them becomes a name, the same one for the same ones: `2\\int f` is
`\\int f + \\int f` by algebra, whatever the integral is.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from simplerl_trainer.rewards.judge.terms import (
    Bare,
    Binder,
    Call,
    Congruence,
    Huge,
    Matrix,
    Quantity,
    Relation,
    Seq,
    SetOf,
    Sym,
    Term,
    members,
    parts,
)

MOST = 12
"""Different ones in two answers: each may be compared with each."""

Equal = Callable[[Term, Term], bool]


def named(gold: Term, answer: Term, equal: Equal) -> tuple[Term, Term]:
    """Both terms with a name in the place of each integral, sum, product and limit; `equal`: whether members are."""
    known: list[Binder] = []
    return _named(gold, known, equal), _named(answer, known, equal)


def holds(term: Term) -> bool:
    return any(isinstance(p, Binder) for p in parts(term))


def _named(term: Term, known: list[Binder], equal: Equal) -> Term:
    def place(found: Term) -> Term:
        if not isinstance(found, Binder):
            return _mapped(found, place)
        index = next((i for i, other in enumerate(known) if _same(other, found, equal)), None)
        if index is None:
            if len(known) == MOST:
                raise Huge(f"more than {MOST} integrals, sums or limits are compared by their text only")
            index = len(known)
            known.append(found)
        return Sym(f"\\{found.name} no. {index}")

    return place(term)


def _same(one: Binder, other: Binder, equal: Equal) -> bool:
    height = _height(one)
    if one.name != other.name or bool(one.variable) != bool(other.variable) or height != _height(other):
        return False
    bound = f"\\bound {height}"  # those inside are lower: their variable gets another name
    bodies = tuple(_renamed(b.body, b.variable, bound) if b.variable else b.body for b in (one, other))
    for left, right in zip(one.limits, other.limits, strict=True):
        if (left is None) != (right is None):
            return False
        if left is not None and right is not None and not _equal(left, right, equal):
            return False
    return _equal(bodies[0], bodies[1], equal)


def _height(term: Term) -> int:
    """How many of these lie in each other."""
    return max((_height(m) for m in members(term)), default=0) + isinstance(term, Binder)


def _equal(left: Term, right: Term, equal: Equal) -> bool:
    if left == right:
        return True
    if holds(left) or holds(right):
        left, right = named(left, right, equal)
    return equal(left, right)


def _renamed(term: Term, variable: str, bound: str) -> Term:
    """With the variable's name replaced, in the indices of others too: `a_i`."""
    index = re.compile(rf"(?<![A-Za-z\\]){re.escape(variable)}(?![A-Za-z])")

    def rename(found: Term) -> Term:
        if isinstance(found, Sym):
            if found.name == variable:
                return Sym(bound)
            name, mark, rest = found.name.partition("_")
            return Sym(f"{name}_{index.sub(lambda _: bound, rest)}") if mark else found
        if isinstance(found, Binder) and found.variable == variable:  # another one of that name
            return replace(found, limits=tuple(None if t is None else rename(t) for t in found.limits))
        return _mapped(found, rename)

    return rename(term)


def _mapped(term: Term, change: Callable[[Term], Term]) -> Term:
    """The term with each member changed."""
    match term:
        case Call(name, args):
            return Call(name, tuple(map(change, args)))
        case Seq(left, right, items):
            return Seq(left, right, tuple(map(change, items)))
        case Bare(items):
            return Bare(tuple(map(change, items)))
        case Matrix(rows):
            return Matrix(tuple(tuple(map(change, row)) for row in rows))
        case Relation(terms, signs):
            return Relation(tuple(map(change, terms)), signs)
        case Congruence(terms, modulus):
            return Congruence(tuple(map(change, terms)), change(modulus))
        case Quantity(value, unit):
            return Quantity(change(value), unit)
        case SetOf(name, left_set, right_set):
            return SetOf(name, change(left_set), change(right_set))
        case Binder(name, variable, limits, body):
            return Binder(name, variable, tuple(None if t is None else change(t) for t in limits), change(body))
    return term
