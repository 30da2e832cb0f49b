"""What answers are made of: plain values, compared by other modules."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction


class Unreadable(Exception):
    """A text is no answer that can be judged."""


class Huge(Exception):
    """A number is too large to be worked out exactly."""


@dataclass(frozen=True, slots=True)
class Num:
    """A number as it was written."""

    value: Fraction
    digits: int = field(default=0, compare=False)
    """Decimal digits of its text."""


@dataclass(frozen=True, slots=True)
class Sym:
    """A variable or a constant by its name: `x`, `a_1`, `\\theta`, `pi`, `e`, `i`, `inf`."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or a function and what it is applied to."""

    name: str
    args: "tuple[Term, ...]"


@dataclass(frozen=True, slots=True)
class Seq:
    """Members in brackets: a tuple, an interval, a set."""

    left: str
    right: str
    items: "tuple[Term, ...]"


@dataclass(frozen=True, slots=True)
class Bare:
    """Members without brackets."""

    items: "tuple[Term, ...]"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of members."""

    rows: "tuple[tuple[Term, ...], ...]"


@dataclass(frozen=True, slots=True)
class Relation:
    """Terms with `=`, `<`, `<=`, `>`, `>=`, `!=` or `in` between each and the next."""

    terms: "tuple[Term, ...]"
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its unit: factors by name and power, sorted."""

    value: "Term"
    unit: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SetOf:
    """Sets joined by `cup`, `cap` or `setminus`."""

    name: str
    left: "Term"
    right: "Term"


@dataclass(frozen=True, slots=True)
class Congruence:
    """Terms that are congruent for a modulus; one where only a remainder is written."""

    terms: "tuple[Term, ...]"
    modulus: "Term"


@dataclass(frozen=True, slots=True)
class Binder:
    """An integral, a sum, a product or a limit."""

    name: str
    variable: str
    """What it runs over; empty where that is not plain."""
    limits: "tuple[Term | None, Term | None]"
    """Below and above its sign; of a limit the place, and from which side."""
    body: "Term"


@dataclass(frozen=True, slots=True)
class Based:
    """Digits in a base that is written at them."""

    digits: str
    base: str


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    words: str


Term = Num | Sym | Call | Seq | Bare | Matrix | Relation | Quantity | SetOf | Congruence | Binder | Based | Text

CONSTANTS = frozenset({"pi", "e", "i", "inf"})
REALS = Sym("\\mathbb{R}")
EMPTY = Seq("{", "}", ())
INFINITY = Sym("inf")


def negated(term: Term) -> Term:
    if isinstance(term, Num):
        return Num(-term.value, term.digits)
    return Call("*", (Num(Fraction(-1)), term))


def parts(term: Term) -> "Iterator[Term]":
    """The term and all terms in it."""
    waiting = [term]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(members(found))


def members(term: Term) -> "tuple[Term, ...]":
    """The terms that it is directly made of."""
    match term:
        case Call(_, args):
            return args
        case Seq(_, _, items) | Bare(items):
            return items
        case Matrix(rows):
            return tuple(item for row in rows for item in row)
        case Relation(terms, _):
            return terms
        case Quantity(value, _):
            return (value,)
        case SetOf(_, left, right):
            return (left, right)
        case Congruence(terms, modulus):
            return (*terms, modulus)
        case Binder(_, _, limits, body):
            return (*(t for t in limits if t is not None), body)
        case _:
            return ()


def variables(*terms: Term) -> list[str]:
    """Names of the variables, sorted."""
    return sorted({p.name for t in terms for p in parts(t) if isinstance(p, Sym) and p.name not in CONSTANTS})


def is_expression(term: Term) -> bool:
    """Whether it is made of numbers, variables and functions only."""
    return isinstance(term, Num | Sym | Call) and all(isinstance(p, Num | Sym | Call) for p in parts(term))
