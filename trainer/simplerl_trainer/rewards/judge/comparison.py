"""Whether two answers are equal: an ordered list of rules, by what the answers are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mpmath import mp, mpf

from simplerl_trainer.rewards.judge import exact, inequalities, names, numeric, plusminus, sets, units
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.judgement import Tolerance
from simplerl_trainer.rewards.judge.terms import (
    REALS,
    Bare,
    Based,
    Call,
    Matrix,
    Num,
    Quantity,
    Relation,
    Seq,
    SetOf,
    Sym,
    Term,
    Text,
    is_expression,
    negated,
    variables,
)

MOST_MEMBERS = 300
"""Of a list whose order does not matter: each may be compared with each."""


class Slow(Exception):
    """The answers can be compared by sympy only, which may take any time."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How answers are compared."""

    tolerance: Tolerance | None = None
    quick: bool = False
    """Raise Slow rather than run sympy."""

    def equal(self, gold: Term, answer: Term) -> bool:
        """Raises Huge, Undefined and Slow."""
        gold, answer = plusminus.expanded(gold), plusminus.expanded(answer)
        if gold == answer:
            return True
        if isinstance(answer, Relation) and set(answer.signs) == {"~"}:
            # a rounding is near what it rounds: other numbers would be guesses
            near = replace(self, tolerance=Tolerance(relative=0.01))
            first, *others = answer.terms
            return all(near.equal(first, t) for t in others) and any(self.equal(gold, t) for t in answer.terms)
        if isinstance(gold, Relation) and set(gold.signs) == {"~"}:
            return self.equal(gold.terms[0], answer)
        left, right = names.named(gold), names.named(answer)
        if left is not None and right is not None:
            if (left.name == right.name or not right.name) and self.equal(left.value, right.value):
                return True
            decided = names.is_plain_inequality(gold) and names.is_plain_inequality(answer)
            return not decided and self._relations(gold, answer)
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            return self._relations(gold, answer)
        if left is not None:
            return not isinstance(answer, Relation) and self.equal(left.value, answer)
        if right is not None:
            return not isinstance(gold, Relation) and self.equal(gold, right.value)
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return self._solution(gold, answer)
        if (pairs := names.assigned(gold)) is not None or names.assigned(answer) is not None:
            return self._assignments(gold, answer, pairs, names.assigned(answer))
        if isinstance(answer, Bare) and isinstance(gold, Num | Sym | Call | Quantity):
            only, *others = answer.items  # one answer in several forms: 15 39/40 or 639/40
            return all(self.equal(only, other) for other in others) and self.equal(gold, only)
        if isinstance(gold, Quantity) or isinstance(answer, Quantity):
            return self._quantities(gold, answer)
        if is_expression(gold) and is_expression(answer):
            return self._expressions(gold, answer)
        return self._collections(gold, answer)

    # collections

    def _collections(self, gold: Term, answer: Term) -> bool:
        match gold, answer:
            case Text(a), Text(b):
                return a == b
            case Based(), _:
                return _based(gold, answer)
            case _, Based():
                return _based(answer, gold)
            case Matrix(a), Matrix(b):
                return len(a) == len(b) and all(self._ordered(x, y) for x, y in zip(a, b, strict=True))
            case Matrix(rows), (Seq("(", ")", items) | Bare(items)):
                return all(len(r) == 1 for r in rows) and self._ordered([r[0] for r in rows], items)
            case Seq("(", ")", items), Matrix(rows):
                return all(len(r) == 1 for r in rows) and self._ordered(items, [r[0] for r in rows])
        if _is_set(gold) or _is_set(answer):
            return self._sets(gold, answer)
        match gold, answer:
            case Seq("{", "}", a), (Seq("{", "}", b) | Bare(b)):
                return self._unordered(_distinct(a, self.equal), _distinct(b, self.equal))
            case Seq(a, b, items), Seq(c, d, others):
                return (a, b) == (c, d) and self._ordered(items, others)
            case Seq("(", ")", items), Bare(others):
                return self._ordered(items, others)
            case Bare(items), (Bare(others) | Seq("(", ")", others)):
                return self._unordered(items, others)
            case Bare(items), Seq("{", "}", others):
                return self._unordered(_distinct(items, self.equal), others)
            case (Seq("{", "}", (only,)), other) | (other, Seq("{", "}", (only,))) if is_expression(other):
                return self.equal(only, other)
        return False

    def _ordered(self, gold: Sequence[Term], answer: Sequence[Term]) -> bool:
        return len(gold) == len(answer) and all(self.equal(g, a) for g, a in zip(gold, answer, strict=True))

    def _unordered(self, gold: Sequence[Term], answer: Sequence[Term]) -> bool:
        if len(gold) != len(answer) or len(gold) > MOST_MEMBERS:
            return False
        left = list(answer)
        for item in gold:
            found = next((i for i, other in enumerate(left) if self.equal(item, other)), None)
            if found is None:
                return False
            del left[found]
        return True

    def _sets(self, gold: Term, answer: Term) -> bool:
        with mp.workdps(numeric.digits(gold, answer)):
            first, second = sets.real_set(gold), sets.real_set(answer)
            if first is not None and second is not None:
                return first.same(second)
        pieces = _pieces(gold), _pieces(answer)
        if len(pieces[0]) < 2 or len(pieces[1]) < 2:
            return False
        return self._unordered(*pieces)

    # equations and inequalities

    def _relations(self, gold: Term, answer: Term) -> bool:
        if not isinstance(gold, Relation) or not isinstance(answer, Relation):
            return False
        if gold.signs == answer.signs and self._ordered(gold.terms, answer.terms):
            return True
        if len(gold.signs) == len(answer.signs) == 1:
            first, second = _difference(gold), _difference(answer)
            if first is not None and second is not None and first[0] == second[0]:
                ratio = _constant_ratio(first[1], second[1])
                if ratio is not None and (ratio > 0 or first[0] in ("=", "!=")):
                    return True
        return self._solution(gold, answer)

    def _solution(self, gold: Term, answer: Term) -> bool:
        """By the sets of numbers for which they hold."""
        names = {n for t in (gold, answer) if isinstance(t, Relation) for n in variables(t)}
        if len(names) != 1 or not all(_solvable(t) for t in (gold, answer)):
            return False
        if self.quick:
            raise Slow
        (name,) = names
        with mp.workdps(numeric.digits(gold, answer)):
            found = [
                inequalities.solved(t, name) if isinstance(t, Relation) else sets.real_set(t) for t in (gold, answer)
            ]
            return found[0] is not None and found[1] is not None and found[0].same(found[1])

    def _assignments(
        self, gold: Term, answer: Term, wanted: dict[str, Term] | None, given: dict[str, Term] | None
    ) -> bool:
        """`x = 3, y = 8`: by name, or in the order of the names."""
        if wanted is not None and given is not None:
            return wanted.keys() == given.keys() and all(self.equal(v, given[n]) for n, v in wanted.items())
        if wanted is not None:
            return self.equal(Seq("(", ")", names.in_order(wanted)), answer)
        assert given is not None
        return self.equal(gold, Bare(names.in_order(given)))

    # quantities

    def _quantities(self, gold: Term, answer: Term) -> bool:
        (value, unit), (other, its) = _split(gold), _split(answer)
        if unit and its:
            return unit == its and self.equal(value, other)
        if units.PERCENT in (unit, its):
            percent, bare = (value, other) if unit else (other, value)
            if not is_expression(percent) or not is_expression(bare):
                return False
            hundredth = Call("/", (percent, Num(Fraction(100))))
            pair = (hundredth, bare) if unit else (bare, hundredth)
            if self.equal(*pair):
                return True
            number = exact.fraction(percent)
            return (number is None or abs(number) >= 1) and self.equal(value, other)
        return self.equal(value, other)

    # expressions

    def _expressions(self, gold: Term, answer: Term) -> bool:
        first, second = exact.fraction(gold), exact.fraction(answer)
        if first is not None and second is not None:
            return first == second or self._near(first, second)
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
                if not numeric.same(left, right) and not self._near_values(left, right):
                    return False
                real += 1
            return real > 0 or (other > 0 and complex_only)

    def _near(self, gold: Fraction, answer: Fraction) -> bool:
        if self.tolerance is None:
            return False
        bound = Fraction(self.tolerance.relative) * abs(gold) + Fraction(self.tolerance.absolute)
        # a float such as 0.01 is a little off what was meant
        return abs(gold - answer) <= bound * (1 + Fraction(1, 10**9))

    def _near_values(self, gold: numeric.Value, answer: numeric.Value) -> bool:
        if self.tolerance is None or mp.isinf(gold) or mp.isinf(answer):
            return False
        bound = mpf(self.tolerance.relative) * abs(gold) + mpf(self.tolerance.absolute)
        return bool(abs(gold - answer) <= bound * (1 + mpf(10) ** -9))


def _split(term: Term) -> tuple[Term, units.Unit]:
    return (term.value, term.unit) if isinstance(term, Quantity) else (term, ())


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


def _based(based: Term, other: Term) -> bool:
    """`52_8` equals `52_8` and, where the other has no base, `52`: digits are compared, never converted."""
    assert isinstance(based, Based)
    digits = based.digits.lstrip("0") or "0"
    if isinstance(other, Based):
        return digits == (other.digits.lstrip("0") or "0") and based.base == other.base
    number = exact.fraction(other)
    return number is not None and number.denominator == 1 and digits == str(number)


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
