"""Names of values: `x = 5`, `x in S`, `x = 3, y = 8`."""

from dataclasses import dataclass

from mpmath import mp

from simplerl_trainer.rewards.judge import numeric, sets
from simplerl_trainer.rewards.judge.sets import RealSet
from simplerl_trainer.rewards.judge.terms import (
    CONSTANTS,
    Bare,
    Call,
    Num,
    Quantity,
    Relation,
    Seq,
    SetOf,
    Sym,
    Term,
    is_expression,
    variables,
)


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    value: Term


def named(term: Term) -> Named | None:
    """The name and the value of `x = 5`, of `x in S`, of `x = 1 or x = 2`."""
    if isinstance(term, Bare):
        return _all_of_one(term)
    if not isinstance(term, Relation):
        return None
    terms, signs = term.terms, term.signs
    if "=" in signs and set(signs) == {"=", "~"}:  # x = 4√3 ≈ 6.93
        exact_until = signs.index("~")
        return named(Relation(terms[: exact_until + 1], signs[:exact_until]))
    if set(signs) == {"="}:
        first, last = terms[0], terms[-1]
        if _is_name(first) and first.name not in variables(*terms[1:]):
            return Named(first.name, last)
        if len(terms) == 2 and _is_name(last) and not isinstance(first, Sym) and last.name not in variables(first):
            return Named(last.name, first)
        if _is_quantity_asked_for(first) and not variables(*terms[1:]):
            return Named(str(first), last)  # AB = 5, x + y = 7
        if isinstance(first, Seq) and isinstance(last, Seq) and all(_is_name(i) for i in first.items):
            return Named("".join(str(i) for i in first.items), last)  # (x, y) = (3, 8)
        if not variables(*terms) and all(isinstance(t, Num | Call | Quantity) for t in terms):
            return Named("", last)  # 10 + 5 = 15
        return None
    found = sets.of_relation(term)
    return None if found is None else Named(*found)


def is_plain_inequality(term: Term) -> bool:
    """Whether it says of one variable between which numbers it lies, so that it needs no solving."""
    return isinstance(term, Relation) and "=" not in term.signs and len(variables(term)) == 1


def _is_quantity_asked_for(term: Term) -> bool:
    """Whether it is made of two variables and more, without numbers but in exponents."""
    if not is_expression(term) or len(variables(term)) < 2:
        return False
    match term:
        case Call("+" | "*" | "/", args):
            return all(isinstance(a, Sym) or _is_power(a) or _is_quantity_asked_for(a) for a in args)
    return False


def _is_power(term: Term) -> bool:
    return isinstance(term, Call) and term.name == "^" and isinstance(term.args[0], Sym)


def _is_name(term: Term) -> "bool":
    return isinstance(term, Sym) and term.name not in CONSTANTS


def _all_of_one(term: Bare) -> Named | None:
    """`x = 1, 2`, `x = 1 or x = 2`, `x < 1 or x > 2`."""
    if not isinstance(term.items[0], Relation):
        return None
    found = [named(i) if isinstance(i, Relation) else None for i in term.items]
    first = found[0]
    if first is None or not first.name:
        return None
    equations = [isinstance(i, Relation) and "=" in i.signs for i in term.items]
    if all(n is not None and n.name == first.name for n in found):
        values = tuple(n.value for n in found if n is not None)
        return Named(first.name, Bare(values) if any(equations) else _both_or_either(values))
    if equations[0] and not any(isinstance(i, Relation) for i in term.items[1:]):
        return Named(first.name, Bare((first.value, *term.items[1:])))
    return None


def _both_or_either(values: tuple[Term, ...]) -> Term:
    """The numbers for which all inequalities hold or, where there are none such, any: `x < 1, x > 2`."""
    found = values[0]
    for value in values[1:]:
        found = SetOf("cap", found, value)
    with mp.workdps(numeric.digits(*values)):
        held = sets.real_set(found)
    return Bare(values) if held == RealSet((), (), (False,)) else found


def assigned(term: Term) -> dict[str, Term] | None:
    """Values by name, where members each have another name."""
    if not isinstance(term, Bare | Seq):
        return None
    found: dict[str, Term] = {}
    for item in term.items:
        one = named(item) if isinstance(item, Relation) and "=" in item.signs else None
        if one is None or one.name in found or not one.name:
            return None
        found[one.name] = one.value
    return found or None


def in_order(values: dict[str, Term]) -> tuple[Term, ...]:
    return tuple(values[name] for name in sorted(values))
