"""Integrals, sums, products and limits, with the variable that they run over."""

from collections.abc import Callable
from fractions import Fraction

from simplerl_trainer.rewards.judge.dialect import GREEK
from simplerl_trainer.rewards.judge.parsing import atoms, members, products, sums
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Binder, Call, Num, Relation, Sym, Term, Unreadable, parts
from simplerl_trainer.rewards.judge.tokens import Token

NAMES = frozenset({"int", "oint", "sum", "prod", "lim"})
_ARROWS = ("to", "rightarrow", "longrightarrow")
_DEEPEST = 4
"""Of these in each other: integrals of many variables have three."""


def read(cursor: Cursor, name: str) -> Term:
    """The binder whose name was read last: its limits and its body follow."""
    if cursor.binders >= _DEEPEST:
        raise Unreadable(f"more than {_DEEPEST} integrals, sums or limits lie in each other")
    cursor.binders += 1
    found = cursor.deeper(lambda c: _READERS[name](c, name))
    cursor.binders -= 1
    return found


def _integral(cursor: Cursor, name: str) -> Term:
    below, above = _limits(cursor, atoms.argument)
    end = _differential(cursor)
    inside = Cursor(cursor.tokens[cursor.at : end])
    inside.depth, inside.binders = cursor.depth, cursor.binders
    body: Term = Num(Fraction(1)) if not inside.tokens else sums.read(inside)
    inside.finish()
    cursor.at = end + 1
    return _bound(name, _variable(cursor), (below, above), body)


def _differential(cursor: Cursor) -> int:
    """The place of the `d` that ends the integral whose body is next: integrals in it have their own before."""
    wanted, depth = 1, 0
    for place in range(cursor.at, len(cursor.tokens) - 1):
        token, after = cursor.tokens[place], cursor.tokens[place + 1]
        if token.kind == "command" and token.text in ("int", "oint"):
            wanted += 1
        elif token.kind == "sign" and token.text in "([{":
            depth += 1
        elif token.kind == "sign" and token.text in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and token.text == "d" and token.kind in ("letter", "word") and _names(after):
            wanted -= 1
            if wanted == 0:
                return place
    raise Unreadable("an integral has no dx at its end")


def _names(token: Token) -> bool:
    """Whether it is a variable: a letter, or a Greek one, which is a command."""
    return token.kind == "letter" or (token.kind == "command" and token.text in _GREEK)


_GREEK = frozenset(GREEK.values())


def _variable(cursor: Cursor) -> str:
    token = cursor.peek()
    if token is None or not _names(token):
        raise Unreadable("the variable is missing")
    cursor.at += 1
    return token.text if token.kind == "letter" else "\\" + token.text


def _series(cursor: Cursor, name: str) -> Term:
    """`\\sum_{i=1}^n i`; what else stands below, such as `i < j`, is compared as it is."""
    below, above = _limits(cursor, _below)
    variable = ""
    if isinstance(below, Relation) and below.signs == ("=",) and isinstance(below.terms[0], Sym):
        variable, below = below.terms[0].name, below.terms[1]
    return _bound(name, variable, (below, above), products.read(cursor))


def _below(cursor: Cursor) -> Term:
    if not cursor.take("{"):
        return atoms.argument(cursor)
    cursor.bars += 1
    items = members.read(cursor, "}", "|", "mid")
    cursor.bars -= 1
    if len(items) == 1 and cursor.take("|", "mid"):  # d | n
        items = [Call("divides", (items[0], products.read(cursor)))]
    cursor.expect("}")
    if len(items) != 1:
        raise Unreadable("several conditions stand below one sign")
    return items[0]


def _limit(cursor: Cursor, name: str) -> Term:
    if not cursor.take("_") or not cursor.take("{"):
        raise Unreadable("a limit has no variable below it")
    variable = _variable(cursor)
    if not cursor.take(*_ARROWS):
        raise Unreadable("a limit has no arrow")
    side: Term | None = None
    start, depth = cursor.at, 1
    end = start
    while depth:
        token = cursor.peek(end - cursor.at)
        if token is None:
            raise Unreadable("} is missing at its end")
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "sign" else 0
        end += 1
    inside = [t for t in cursor.tokens[start : end - 1] if not (t.kind == "sign" and t.text in "{}")]
    signs = [t.text for t in inside[-2:]]
    to = cursor.tokens[start : end - 1]
    if len(signs) == 2 and signs[0] == "^" and signs[1] in "+-":  # from one side
        side = Sym(f"from {signs[1]}")
        to = to[: next(i for i in range(len(to) - 1, -1, -1) if to[i].text == "^")]
    elif signs[-1:] in (["+"], ["-"]) and len(inside) > 1:
        side = Sym(f"from {signs[-1]}")
        to = inside[:-1]
    place = Cursor(to)
    place.depth, place.binders = cursor.depth, cursor.binders
    near = sums.read(place)
    place.finish()
    cursor.at = end
    return _bound(name, variable, (near, side), products.read(cursor))


def _limits(cursor: Cursor, below: Callable[[Cursor], Term]) -> tuple[Term | None, Term | None]:
    """What stands below and above the sign."""
    lower: Term | None = None
    upper: Term | None = None
    while cursor.sees("_", "^"):
        if cursor.take("_"):
            lower = below(cursor)
        else:
            cursor.at += 1
            upper = atoms.argument(cursor)
    return lower, upper


def _bound(name: str, variable: str, limits: tuple[Term | None, Term | None], body: Term) -> Term:
    inside = [p for t in (body, *limits) if t is not None for p in parts(t)]
    if not all(isinstance(p, Num | Sym | Call | Binder | Relation) for p in inside):
        raise Unreadable(f"\\{name} is applied to what is no expression")
    return Binder(name, variable, limits, body)


_READERS: dict[str, Callable[[Cursor, str], Term]] = {
    "int": _integral, "oint": _integral, "sum": _series, "prod": _series, "lim": _limit,
}  # fmt: skip
