"""Whether two answers are equal: an ordered list of rules, by what the answers are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mpmath import mp, mpf

from simplerl_trainer.rewards.judge import exact, inequalities, numeric, sets, units
from simplerl_trainer.rewards.judge.exact import Undefined
from simplerl_trainer.rewards.judge.judgement import Tolerance
from simplerl_trainer.rewards.judge.sets import RealSet
from simplerl_trainer.rewards.judge.terms import (
    CONSTANTS,
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
    parts,
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
        gold, answer = expanded(gold), expanded(answer)
        if gold == answer:
            return True
        if isinstance(answer, Relation) and set(answer.signs) == {"~"}:
            # a rounding is near what it rounds: other numbers would be guesses
            near = replace(self, tolerance=Tolerance(relative=0.01))
            first, *others = answer.terms
            return all(near.equal(first, t) for t in others) and any(self.equal(gold, t) for t in answer.terms)
        if isinstance(gold, Relation) and set(gold.signs) == {"~"}:
            return self.equal(gold.terms[0], answer)
        left, right = _named(gold), _named(answer)
        if left is not None and right is not None:
            if (left.name == right.name or not right.name) and self.equal(left.value, right.value):
                return True
            decided = _is_plain_inequality(gold) and _is_plain_inequality(answer)
            return not decided and self._relations(gold, answer)
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            return self._relations(gold, answer)
        if left is not None:
            return not isinstance(answer, Relation) and self.equal(left.value, answer)
        if right is not None:
            return not isinstance(gold, Relation) and self.equal(gold, right.value)
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return self._solution(gold, answer)
        if (pairs := _assigned(gold)) is not None or _assigned(answer) is not None:
            return self._assignments(gold, answer, pairs, _assigned(answer))
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
            return self.equal(Seq("(", ")", _in_order(wanted)), answer)
        assert given is not None
        return self.equal(gold, Bare(_in_order(given)))

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


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    value: Term


def _named(term: Term) -> _Named | None:
    """The name and the value of `x = 5`, of `x in S`, of `x = 1 or x = 2`."""
    if isinstance(term, Bare):
        return _all_of_one(term)
    if not isinstance(term, Relation):
        return None
    terms, signs = term.terms, term.signs
    if "=" in signs and set(signs) == {"=", "~"}:  # x = 4√3 ≈ 6.93
        exact_until = signs.index("~")
        return _named(Relation(terms[: exact_until + 1], signs[:exact_until]))
    if set(signs) == {"="}:
        first, last = terms[0], terms[-1]
        if _is_name(first) and first.name not in variables(*terms[1:]):
            return _Named(first.name, last)
        if len(terms) == 2 and _is_name(last) and not isinstance(first, Sym) and last.name not in variables(first):
            return _Named(last.name, first)
        if _is_quantity_asked_for(first) and not variables(*terms[1:]):
            return _Named(str(first), last)  # AB = 5, x + y = 7
        if isinstance(first, Seq) and isinstance(last, Seq) and all(_is_name(i) for i in first.items):
            return _Named("".join(str(i) for i in first.items), last)  # (x, y) = (3, 8)
        if not variables(*terms) and all(isinstance(t, Num | Call | Quantity) for t in terms):
            return _Named("", last)  # 10 + 5 = 15
        return None
    found = sets.of_relation(term)
    return None if found is None else _Named(*found)


def _is_plain_inequality(term: Term) -> bool:
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


def _all_of_one(term: Bare) -> _Named | None:
    """`x = 1, 2`, `x = 1 or x = 2`, `x < 1 or x > 2`."""
    if not isinstance(term.items[0], Relation):
        return None
    named = [_named(i) if isinstance(i, Relation) else None for i in term.items]
    first = named[0]
    if first is None or not first.name:
        return None
    equations = [isinstance(i, Relation) and "=" in i.signs for i in term.items]
    if all(n is not None and n.name == first.name for n in named):
        values = tuple(n.value for n in named if n is not None)
        return _Named(first.name, Bare(values) if any(equations) else _both_or_either(values))
    if equations[0] and not any(isinstance(i, Relation) for i in term.items[1:]):
        return _Named(first.name, Bare((first.value, *term.items[1:])))
    return None


def _both_or_either(values: tuple[Term, ...]) -> Term:
    """The numbers for which all inequalities hold or, where there are none such, any: `x < 1, x > 2`."""
    found = values[0]
    for value in values[1:]:
        found = SetOf("cap", found, value)
    with mp.workdps(numeric.digits(*values)):
        held = sets.real_set(found)
    return Bare(values) if held == RealSet((), (), (False,)) else found


def _assigned(term: Term) -> dict[str, Term] | None:
    """Values by name, where members each have another name."""
    if not isinstance(term, Bare | Seq):
        return None
    found: dict[str, Term] = {}
    for item in term.items:
        named = _named(item) if isinstance(item, Relation) and "=" in item.signs else None
        if named is None or named.name in found or not named.name:
            return None
        found[named.name] = named.value
    return found or None


def _in_order(values: dict[str, Term]) -> tuple[Term, ...]:
    return tuple(values[name] for name in sorted(values))


def expanded(term: Term) -> Term:
    """With both values of each `\\pm` in it, without `k \\in \\mathbb{Z}` at its end."""
    match term:
        case Bare((*kept, Relation((Sym(), Sym(name)), ("in",)))) if name.startswith("\\mathbb") and kept:
            term = kept[0] if len(kept) == 1 else Bare(tuple(kept))
    if not any(isinstance(p, Call) and p.name in ("pm", "mp") for p in parts(term)):
        return term
    match term:
        case Bare(items):
            return Bare(tuple(found for item in items for found in _either(item)))
        case Seq("{", "}", items):
            return replace(term, items=tuple(found for item in items for found in _either(item)))
        case Relation((first, *others), signs):
            values = [_either(other) for other in others]
            if len(values) == 1 and len(values[0]) == 2 and signs == ("=",):
                return Bare(tuple(Relation((first, value), signs) for value in values[0]))
    found = _either(term)
    return found[0] if len(found) == 1 else Bare(tuple(found))


def _either(term: Term) -> list[Term]:
    if not any(isinstance(p, Call) and p.name in ("pm", "mp") for p in parts(term)):
        return [term]
    return [_signed(term, 1), _signed(term, -1)]


def _signed(term: Term, sign: int) -> Term:
    def each(items: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(_signed(i, sign) for i in items)

    match term:
        case Call("pm" | "mp" as name, (left, right)):
            second = _signed(right, sign)
            if (sign > 0) != (name == "pm"):
                second = negated(second)
            return Call("+", (_signed(left, sign), second))
        case Call(name, args):
            return Call(name, each(args))
        case Seq(left_sign, right_sign, items):
            return Seq(left_sign, right_sign, each(items))
        case Bare(items):
            return Bare(each(items))
        case Relation(terms, signs):
            return Relation(each(terms), signs)
        case Quantity(value, unit):
            return Quantity(_signed(value, sign), unit)
    return term


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
