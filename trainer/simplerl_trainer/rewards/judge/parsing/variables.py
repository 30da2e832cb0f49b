"""Variables: a letter with its index and its primes."""

from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Sym, Term, Unreadable


def read(cursor: Cursor, name: str) -> Term:
    """The variable or the constant whose letter was read last."""
    if name == "e" and not cursor.sees("_"):
        return Sym("e")
    if name == "i" and not cursor.sees("_"):
        return Sym("i")
    name = decorated(cursor, name)
    number = cursor.peek(1)
    if cursor.sees("(") and cursor.sees(")", ahead=2) and number is not None and number.kind == "number":
        cursor.at += 3
        name += f"({number.text})"  # I(0) is a value of I, not I times 0
    return Sym(name)


def decorated(cursor: Cursor, name: str) -> str:
    """A name with its index and its primes."""
    if cursor.take("_"):
        name += "_" + index(cursor)
    while cursor.take("'"):
        name += "'"
    return name


def index(cursor: Cursor) -> str:
    """The text of a group or of one token."""
    if not cursor.take("{"):
        token = cursor.peek()
        if token is None:
            raise Unreadable("an index is missing")
        cursor.at += 1
        return token.text
    found, depth = "", 1
    while (token := cursor.peek()) is not None:
        cursor.at += 1
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "sign" else 0
        if depth == 0:
            return found
        found += token.text
    raise Unreadable("an index has no end")
