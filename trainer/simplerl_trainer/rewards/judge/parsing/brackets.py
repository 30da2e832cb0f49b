"""What stands in brackets: a group, a tuple, an interval, a set, an absolute value."""

from simplerl_trainer.rewards.judge import units
from simplerl_trainer.rewards.judge.parsing import members, sums
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Call, Quantity, Seq, Term, Unreadable


def read(cursor: Cursor, sign: str) -> Term:
    """What the bracket that was read last opens, with its end."""
    if sign in ("(", "["):
        return cursor.deeper(lambda c: sequence(c, sign))
    if sign == "\\{":
        return cursor.deeper(_braces)
    if sign == "{":
        cursor.at -= 1
        return group(cursor)
    if sign == "|":
        cursor.bars += 1
        found = cursor.deeper(sums.read)
        cursor.bars -= 1
        cursor.expect("|")
        return Call("abs", (found,))
    raise Unreadable(f"{sign!r} stands where a value should")


def sequence(cursor: Cursor, left: str) -> Term:
    """A tuple or an interval after its left bracket; a member that stands alone in `()` is itself."""
    bars, cursor.bars = cursor.bars, 0
    items = members.read(cursor, ")", "]")
    cursor.bars = bars
    token = cursor.peek()
    if token is None or not items:
        raise Unreadable(f"{left} has no end" if token is None else "brackets hold nothing")
    cursor.at += 1
    if len(items) == 1 and left + token.text in ("()", "[]"):
        (only,) = items
        # in a function's brackets degrees are a number: \cos(60°)
        degrees = isinstance(only, Quantity) and only.unit == units.DEGREE
        return Call("degree", (only.value,)) if degrees and isinstance(only, Quantity) else only
    return Seq(left, token.text, tuple(items))


def _braces(cursor: Cursor) -> Term:
    described = _described(cursor)
    bars, cursor.bars, cursor.described = cursor.bars, cursor.bars + described, described
    items = members.read(cursor, "\\}", "|", "mid", ":")
    cursor.bars, cursor.described = bars, False
    if cursor.take("|", "mid", ":"):  # {x | x > 2} is the relation
        items = members.read(cursor, "\\}")
        cursor.expect("\\}")
        if len(items) != 1:
            raise Unreadable("a set is described by more than one relation")
        return items[0]
    cursor.expect("\\}")
    return Seq("{", "}", tuple(items))


def _described(cursor: Cursor) -> bool:
    """Whether a sign parts what the set holds from when it does: a colon before a relation, a bar without partner."""
    bars, colon, depth = 0, False, 1
    for token in cursor.tokens[cursor.at :]:
        if token.kind == "sign":
            depth += {"\\{": 1, "\\}": -1}.get(token.text, 0)
            if depth == 0:
                break
            bars += token.text == "|"
        if token.text == ":":
            colon = True
        elif colon and token.text in members.RELATIONS:
            return True
    return bars % 2 == 1


def group(cursor: Cursor) -> Term:
    """What stands in TeX's braces; a set where members are listed."""
    cursor.expect("{")
    bars, cursor.bars = cursor.bars, 0
    cursor.open()
    items = members.read(cursor, "}")
    cursor.close()
    cursor.bars = bars
    cursor.expect("}")
    return items[0] if len(items) == 1 else Seq("{", "}", tuple(items))
