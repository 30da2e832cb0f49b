"""Both values of `\\pm`."""

from dataclasses import replace

from simplerl_trainer.rewards.judge.terms import Bare, Call, Quantity, Relation, Seq, Sym, Term, negated, parts


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
