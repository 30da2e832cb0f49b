"""Quantities: a value, the money's sign before it, and the unit after it."""

from simplerl_trainer.rewards.judge import units
from simplerl_trainer.rewards.judge.parsing import powers, sums
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Call, Quantity, Seq, Sym, Term, Unreadable, negated

_MONEY = {"\\$": "dollar", "euro": "euro", "pound": "pound", "yen": "yen"}


def read(cursor: Cursor) -> Term:
    token = cursor.peek()
    if token is not None and token.kind == "word" and len(token.text) > 1:
        return _named_word(cursor)
    negative = cursor.sees("-") and (
        cursor.sees("\\$", ahead=1) or ((t := cursor.peek(1)) is not None and t.kind == "command" and t.text in _MONEY)
    )
    if negative:
        cursor.at += 1
    token = cursor.peek()
    money = ""
    if token is not None and token.kind in ("sign", "command") and token.text in _MONEY:
        money = _MONEY[token.text]
        cursor.at += 1
    term = _ratio(cursor)
    if negative:
        term = negated(term)
    reader = units.Reader()
    if money:
        reader.word(money)
    _unit(cursor, reader, seen=powers.is_degree(term))
    unit = reader.unit()
    if isinstance(term, Call) and powers.is_degree(term):
        unit = unit or units.DEGREE
        if unit not in (units.DEGREE, (("celsius", 1),), (("fahrenheit", 1),), (("kelvin", 1),)):
            raise Unreadable("degrees have another unit beside them")
        term = term.args[0]
    return Quantity(term, unit) if unit else term


def _named_word(cursor: Cursor) -> Term:
    """A word that stands for a value: `area = 5`."""
    place = 0
    names = []
    while (t := cursor.peek(place)) is not None and t.kind == "word":
        names.append(t.text.lower())
        place += 1
    if cursor.sees("=", ahead=place) or cursor.sees("approx", ahead=place):
        cursor.at += place
        return Sym(" ".join(names))
    raise Unreadable("it is words")


def _ratio(cursor: Cursor) -> Term:
    """`3:4` is 3/4, `1:2:3` a tuple."""
    items = [sums.read(cursor)]
    if isinstance(items[0], Sym) and items[0].name.startswith("\\mathbb"):
        return items[0]  # {x in R : x > 2}
    while (
        not cursor.described
        and cursor.sees(":")
        and (t := cursor.peek(1)) is not None
        and t.kind in ("number", "letter", "command")
    ):
        cursor.at += 1
        items.append(sums.read(cursor))
    if len(items) == 1:
        return items[0]
    return Call("/", (items[0], items[1])) if len(items) == 2 else Seq("(", ")", tuple(items))


def _unit(cursor: Cursor, reader: units.Reader, *, seen: bool) -> None:
    """What follows a value: its unit; `seen`: some of it was there already."""
    while (token := cursor.peek()) is not None:
        after = cursor.peek(1)
        if token.kind == "word":
            reader.word(token.text)
        elif token.text in ("\\%", "%"):
            reader.word("%")
        elif token.text in ("euro", "pound", "yen", "cent", "AA", "\\$") and token.kind in ("command", "sign"):
            reader.word({"\\$": "dollar"}.get(token.text, token.text))
        elif token.text in ("circ", "degree"):
            reader.word("degree")
        elif token.text == "mu" and token.kind == "command" and after is not None and after.kind == "word":
            cursor.at += 1
            reader.word("micro" + after.text)
        elif token.text == "/" and after is not None and (after.kind == "word" or (seen and after.kind == "letter")):
            reader.divide()
        elif seen and token.text == "^":
            cursor.at += 1
            reader.power(_small_power(cursor))
            continue
        elif seen and token.text in ("cdot", "*", "-", ".") and after is not None and after.kind == "word":
            reader.times()
        elif seen and token.kind == "letter" and units.letter(token.text):
            reader.word(token.text)
        else:
            return
        seen = True
        cursor.at += 1


def _small_power(cursor: Cursor) -> int:
    braced = cursor.take("{")
    sign = -1 if cursor.take("-") else 1
    token = cursor.peek()
    if token is None or token.kind != "number" or not token.text.isdigit() or len(token.text) > 2:
        raise Unreadable("a unit has no such power")
    cursor.at += 1
    if braced:
        cursor.expect("}")
    return sign * int(token.text)
