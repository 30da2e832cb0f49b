"""Members of lists: relations, sets joined by `\\cup`, or quantities alone."""

from simplerl_trainer.rewards.judge.parsing import products, quantities
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Congruence, Relation, SetOf, Sym, Term, Unreadable

RELATIONS = {
    "=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "le": "<=", "ge": ">=", "ne": "!=", "\\ne": "!=", "lt": "<",
    "gt": ">", "in": "in", "approx": "=", "equiv": "=", "colon": ":",
}  # fmt: skip
SETS = frozenset({"cup", "cap", "setminus"})


def read(cursor: Cursor, *closing: str) -> list[Term]:
    """The members before a closing sign or, where there is none, before the end."""
    items = []
    while not cursor.ended(*closing):
        if cursor.take(",", ";"):
            continue
        if cursor.sees(".") and cursor.peek(1) is None:
            cursor.at += 1
            continue
        items.append(_member(cursor))
        if cursor.ended(*closing):
            break
        if not cursor.sees(",", ";", ".", ":"):
            token = cursor.peek()
            raise Unreadable(f"{token.text!r} stands where nothing can" if token else "it ends too early")
        if cursor.sees(":") and cursor.peek(1) is not None:
            raise Unreadable("a colon stands where nothing can")
        if cursor.sees(".", ":"):
            cursor.finish()
    return _of_one_modulus(items)


def _member(cursor: Cursor) -> Term:
    cursor.take("approx", "=")
    first = _function_name(cursor) or _set(cursor)
    terms, signs = [first], []
    while True:
        token = cursor.peek()
        if token is None or token.kind not in ("sign", "command") or token.text not in RELATIONS:
            break
        cursor.at += 1
        if RELATIONS[token.text] == ":":
            raise Unreadable("a colon stands where nothing can")
        # x ≈ 3 is x = 3, and 4√3 ≈ 6.93 two forms of one answer
        rounded = token.text == "approx" and not (isinstance(terms[-1], Sym) and len(terms) == 1)
        signs.append("~" if rounded else RELATIONS[token.text])
        cursor.take("approx", "=")
        terms.append(_set(cursor))
    if (modulus := _modulus(cursor)) is not None:
        if set(signs) - {"="}:
            raise Unreadable("an inequality has a modulus")
        return Congruence(tuple(terms), modulus)
    return first if not signs else Relation(tuple(terms), tuple(signs))


def _modulus(cursor: Cursor) -> Term | None:
    """That of `3 \\pmod 7`, of `3 (mod 7)` and of `3 \\bmod 7`; None where there is none."""
    bracket = cursor.sees("(") and cursor.sees(*products.MODULO, ahead=1)
    if bracket:
        cursor.at += 1
    if not cursor.take(*products.MODULO):
        return None
    found = products.read(cursor)
    if bracket:
        cursor.expect(")")
    return found


def _of_one_modulus(items: list[Term]) -> list[Term]:
    """`x \\equiv 1, 3 \\pmod 8`: the modulus at the end is that of all."""
    last = items[-1] if items else None
    if not isinstance(last, Congruence) or any(isinstance(i, Congruence) for i in items[:-1]):
        return items
    found: list[Term] = []
    name: tuple[Term, ...] = last.terms[:-1]
    for item in items:
        terms = item.terms if isinstance(item, Relation | Congruence) else (item,)
        name = terms[:-1] or name
        found.append(Congruence((*name, terms[-1]), last.modulus))
    return found


def _function_name(cursor: Cursor) -> Term | None:
    """`f(x)` before an equals sign is a name."""
    token = cursor.peek()
    if token is None or token.kind != "letter":
        return None
    derived = 1  # f'(x) and f^{-1}(x) too
    if (
        cursor.sees("^", ahead=1)
        and cursor.sees("{", ahead=2)
        and cursor.sees("-", ahead=3)
        and cursor.sees("}", ahead=5)
    ):
        derived = 6
    while cursor.sees("'", ahead=derived):
        derived += 1
    if not cursor.sees("(", ahead=derived):
        return None
    name = token.text + "".join(t.text for t in cursor.tokens[cursor.at + 1 : cursor.at + derived])
    place, inside = 1 + derived, []
    while (t := cursor.peek(place)) is not None and (t.kind in ("letter", "number") or t.text == ","):
        inside.append(t.text)
        place += 1
    if not inside or not cursor.sees(")", ahead=place) or not cursor.sees("=", ahead=place + 1):
        return None
    cursor.at += place + 1
    return Sym(f"{name}({''.join(inside)})")


def _set(cursor: Cursor) -> Term:
    left = quantities.read(cursor)
    while True:
        token = cursor.peek()
        if token is None or token.kind != "command" or token.text not in SETS:
            return left
        cursor.at += 1
        left = SetOf(token.text, left, quantities.read(cursor))
