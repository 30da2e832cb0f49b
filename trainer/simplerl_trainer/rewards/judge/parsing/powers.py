"""Powers: an atom, its factorials, its degrees and its exponent."""

from simplerl_trainer.rewards.judge.parsing import atoms, brackets
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Call, Term, negated


def read(cursor: Cursor) -> Term:
    base = _postfix(cursor, atoms.read(cursor))
    if cursor.take("^"):
        if cursor.sees("circ") or (cursor.sees("{") and cursor.sees("circ", ahead=1) and cursor.sees("}", ahead=2)):
            cursor.at += 1 if cursor.sees("circ") else 3
            return _postfix(cursor, Call("degree", (base,)))
        raised = cursor.deeper(exponent)
        return _postfix(cursor, Call("^", (base, raised)))
    return base


def exponent(cursor: Cursor) -> Term:
    """What stands after `^`: a group or one atom, with its sign and its own exponent."""
    if cursor.take("-"):
        return negated(exponent(cursor))
    found = brackets.group(cursor) if cursor.sees("{") else atoms.read(cursor)
    if cursor.take("^"):
        return Call("^", (found, cursor.deeper(exponent)))
    return found


def _postfix(cursor: Cursor, base: Term) -> Term:
    while cursor.sees("!"):
        cursor.at += 1
        base = Call("factorial", (base,))
    return base


def is_degree(term: Term) -> bool:
    """Whether it has `^\\circ`."""
    return isinstance(term, Call) and term.name == "degree"
