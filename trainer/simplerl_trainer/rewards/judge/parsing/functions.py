"""Functions and what they are applied to, which needs no brackets: `\\sin 2x`."""

from fractions import Fraction

from simplerl_trainer.rewards.judge.parsing import atoms, members, powers, products
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Call, Num, Sym, Term, Unreadable, negated
from simplerl_trainer.rewards.judge.tokens import FUNCTIONS, UNARY

_ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "log10"}


def read(cursor: Cursor, name: str) -> Term:
    """The function whose name was read last, applied: its base, its power and its argument follow."""
    if name not in UNARY:
        if name in ("max", "min", "gcd", "lcm") and cursor.take("(", "\\{"):
            items = members.read(cursor, ")", "\\}")
            cursor.at += 1
            return Call(name, tuple(items))
        raise Unreadable(f"{name} stands in it")
    name = _ALIASES.get(name, name)
    base: Term | None = None
    power: Term | None = None
    while cursor.sees("_", "^"):
        if cursor.take("_"):
            base = atoms.argument(cursor)
        else:
            cursor.at += 1
            power = cursor.deeper(powers.exponent)
    argument = cursor.deeper(_argument)
    if name == "log" and base is not None:
        found: Term = Call("logb", (argument, base))
    elif base is not None:
        raise Unreadable(f"{name} has an index")
    elif power == Num(Fraction(-1)) and name in ("sin", "cos", "tan", "cot", "sec", "csc"):
        return Call("arc" + name, (argument,))
    else:
        found = Call(name, (argument,))
    return found if power is None else Call("^", (found, power))


def _argument(cursor: Cursor) -> Term:
    if cursor.sees("(", "[", "{", "|"):
        return powers.read(cursor)
    # \sin 2x + 1 is sin(2x) + 1
    negative = cursor.take("-")
    found = powers.read(cursor)
    while True:
        token = cursor.peek()
        if token is None or (token.kind == "command" and token.text in FUNCTIONS) or cursor.sees("(", "|"):
            break
        if (
            cursor.sees("/")
            and isinstance(found, Num | Sym)
            and (t := cursor.peek(1)) is not None
            and t.kind == "number"
        ):
            cursor.at += 1
            found = Call("/", (found, powers.read(cursor)))
        elif products.factor_starts(cursor):
            found = Call("*", (found, powers.read(cursor)))
        else:
            break
    return negated(found) if negative else found
