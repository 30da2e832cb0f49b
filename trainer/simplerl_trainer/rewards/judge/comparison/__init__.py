"""Whether two answers are equal: an ordered list of rules, by what the answers are.

A module says of one kind of answer when two are the same; those whose answers hold others are given `equal` for them.
"""

from dataclasses import dataclass, replace

from simplerl_trainer.rewards.judge import names, plusminus
from simplerl_trainer.rewards.judge.comparison import (
    binders,
    collections,
    congruences,
    expressions,
    literals,
    quantities,
    relations,
)
from simplerl_trainer.rewards.judge.comparison.relations import Slow
from simplerl_trainer.rewards.judge.judgement import Tolerance
from simplerl_trainer.rewards.judge.names import Named
from simplerl_trainer.rewards.judge.terms import (
    Bare,
    Call,
    Congruence,
    Num,
    Quantity,
    Relation,
    Seq,
    Sym,
    Term,
    is_expression,
    variables,
)

__all__ = ["Comparison", "Slow"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How answers are compared."""

    tolerance: Tolerance | None = None
    quick: bool = False
    """Raise Slow rather than run sympy."""

    def same(self, gold: Term, answer: Term) -> bool:
        """Whether two whole answers are equal. Raises as `equal`."""
        if binders.holds(gold) or binders.holds(answer):
            gold, answer = binders.named(gold, answer, self.equal)
        return self.equal(gold, answer)

    def equal(self, gold: Term, answer: Term) -> bool:
        """Raises Huge, Undefined and Slow."""
        gold, answer = plusminus.expanded(gold), plusminus.expanded(answer)
        if gold == answer:
            return True
        if isinstance(gold, Congruence) or isinstance(answer, Congruence):
            return congruences.same(gold, answer, self.equal)
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
            return not decided and relations.same(gold, answer, self.equal, quick=self.quick)
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            if relations.same(gold, answer, self.equal, quick=self.quick):
                return True
            if left is not None:
                return self._solutions(left, answer)
            return right is not None and self._solutions(right, gold)
        if left is not None:
            return self._solutions(left, answer) if isinstance(answer, Relation) else self.equal(left.value, answer)
        if right is not None:
            return self._solutions(right, gold) if isinstance(gold, Relation) else self.equal(gold, right.value)
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return relations.same_solution(gold, answer, quick=self.quick)
        if (pairs := names.assigned(gold)) is not None or names.assigned(answer) is not None:
            return self._assignments(gold, answer, pairs, names.assigned(answer))
        if isinstance(answer, Bare) and isinstance(gold, Num | Sym | Call | Quantity):
            only, *others = answer.items  # one answer in several forms: 15 39/40 or 639/40
            return all(self.equal(only, other) for other in others) and self.equal(gold, only)
        if isinstance(gold, Quantity) or isinstance(answer, Quantity):
            return quantities.same(gold, answer, self.equal)
        if is_expression(gold) and is_expression(answer):
            return expressions.same(gold, answer, self.tolerance)
        if (told := literals.same(gold, answer)) is not None:
            return told
        return collections.same(gold, answer, self.equal)

    def _solutions(self, named: Named, relation: Relation) -> bool:
        """Whether `x in S` says what `|x| < 2` does."""
        if named.name not in variables(relation):
            return False
        return relations.same_solution(relation, named.value, quick=self.quick)

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
