"""Products and quotients: powers with a sign or nothing between them; mixed numbers."""

from fractions import Fraction

from simplerl_trainer.rewards.judge.parsing import members, numbers, powers
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Call, Num, Term, Unreadable, negated

_ONE = Num(Fraction(1))
MODULO = ("pmod", "bmod", "mod")
"""Before a congruence's modulus."""


def read(cursor: Cursor) -> Term:
    items = [powers.read(cursor)]  # in one list: long products must not nest deeply
    while True:
        if cursor.take("*", "cdot", "times"):
            items.append(_signed_power(cursor))
        elif cursor.sees("div") or (cursor.sees("/") and not ((t := cursor.peek(1)) is not None and t.kind == "word")):
            cursor.at += 1
            below = _signed_power(cursor)
            plain = len(items) == 1 and not (isinstance(items[0], Call) and items[0].name == "/")
            items = [Call("/", (items[0], below))] if plain else [*items, Call("/", (_ONE, below))]
        elif (mixed := _mixed(cursor, items[-1])) is not None:
            items[-1] = mixed
        elif factor_starts(cursor) and not (powers.is_degree(items[-1]) and _temperature(cursor)):
            token = cursor.peek()
            if token is not None and token.kind == "number" and cursor.tokens[cursor.at - 1].kind == "number":
                raise Unreadable("two numbers stand side by side")
            items.append(powers.read(cursor))
        else:
            return items[0] if len(items) == 1 else Call("*", tuple(items))


def _temperature(cursor: Cursor) -> bool:
    """Whether degrees are those of Celsius, Fahrenheit or Kelvin."""
    token = cursor.peek()
    return token is not None and token.kind == "letter" and token.text in ("C", "F", "K")


def _mixed(cursor: Cursor, left: Term) -> Term | None:
    """`3\\frac{1}{2}` and `3 1/2` are 7/2."""
    if not isinstance(left, Num) or left.value.denominator != 1 or cursor.tokens[cursor.at - 1].kind != "number":
        return None
    start = cursor.at
    token = cursor.peek()
    found: Term | None = None
    if cursor.sees("frac"):
        found = powers.read(cursor)
    elif token is not None and token.kind == "number" and token.spaced and cursor.sees("/", ahead=1):
        cursor.at += 2
        below = cursor.peek()
        if below is not None and below.kind == "number":
            cursor.at += 1
            found = Call("/", (numbers.read(token.text), numbers.read(below.text)))
    match found:
        case Call("/", (Num(above), Num(below_value))) if (
            above.denominator == below_value.denominator == 1 and 0 < above < below_value
        ):
            return Num(left.value + above / below_value, left.digits)
    cursor.at = start
    return None


def factor_starts(cursor: Cursor) -> bool:
    """Whether a factor begins here."""
    token = cursor.peek()
    if token is None:
        return False
    if token.kind in ("number", "letter"):
        return True
    if token.kind == "word":
        return False
    if token.kind == "sign":
        if token.text == "(" and cursor.sees(*MODULO, ahead=1):
            return False
        return token.text in ("(", "[", "{") or (token.text == "|" and cursor.bars == 0)
    if token.text in ("rfloor", "rceil", "rangle", "circ", "AA", "mu") and token.kind == "command":
        after = cursor.peek(1)
        return token.text == "mu" and not (after is not None and after.kind == "word")
    return (
        token.text not in members.RELATIONS
        and token.text not in members.SETS
        and token.text not in MODULO
        and token.text not in ("pm", "mp", "cdot", "times", "div", "euro", "pound", "yen", "cent", "mid")
    )


def _signed_power(cursor: Cursor) -> Term:
    if cursor.take("-"):
        return negated(_deeper_power(cursor))
    cursor.take("+")
    return _deeper_power(cursor)


def _deeper_power(cursor: Cursor) -> Term:
    return cursor.deeper(powers.read)
