"""TeX commands: fractions, roots, constants, and what is named by a command."""

from simplerl_trainer.rewards.judge.parsing import atoms, binders, brackets, functions, members, sums, variables
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import EMPTY, Call, Seq, Sym, Term, Unreadable
from simplerl_trainer.rewards.judge.tokens import FUNCTIONS

_NAMED = {"pi": Sym("pi"), "infty": Sym("inf"), "emptyset": EMPTY}
_BOXES = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_UNREADABLE = frozenset(
    [
        "iint",
        "iiint",
        "partial",
        "nabla",
        "ldots",
        "begin",
        "end",
        "mid",
        "circ",
        "pmod",
        "bmod",
        "mod",
        "to",
        "rightarrow",
        "Rightarrow",
        "implies",
        "forall",
        "exists",
        "subset",
        "subseteq",
        "perp",
        "parallel",
        "underbrace",
        "overbrace",
        "stackrel",
    ]
)


def read(cursor: Cursor, name: str) -> Term:
    """What the command that was read last stands for, with its arguments."""
    if name in _NAMED:
        return _NAMED[name]
    if name in ("frac", "over"):
        above = atoms.argument(cursor)
        return Call("/", (above, atoms.argument(cursor)))
    if name == "sqrt":
        return _root(cursor)
    if name in ("binom", "choose"):
        above = atoms.argument(cursor)
        return Call("binom", (above, atoms.argument(cursor)))
    if name in _BOXES:
        closing, function = _BOXES[name]
        found = cursor.deeper(sums.read)
        cursor.expect(closing)
        return Call(function, (found,))
    if name == "langle":
        items = members.read(cursor, "rangle")
        cursor.expect("rangle")
        return Seq("(", ")", tuple(items))
    if name in binders.NAMES:
        return binders.read(cursor, name)
    if name in FUNCTIONS:
        return functions.read(cursor, name)
    if name in ("overline", "bar", "dot", "ddot", "vec", "hat", "tilde", "widehat", "overrightarrow"):
        inside = variables.index(cursor)
        return Sym(variables.decorated(cursor, f"\\{name} {inside}"))
    if name in ("angle", "triangle", "measuredangle"):
        start = cursor.at
        while (token := cursor.peek()) is not None and token.kind == "letter":
            cursor.at += 1
            variables.decorated(cursor, "")
        return Sym(f"\\{name} " + "".join(t.text for t in cursor.tokens[start : cursor.at] if t.text not in "{}"))
    if name.startswith(("mathbb{", "mathcal{")):
        return Sym(variables.decorated(cursor, "\\" + name))
    if name in _UNREADABLE or name in members.RELATIONS or name in members.SETS:
        raise Unreadable(f"\\{name} stands in it")
    return Sym(variables.decorated(cursor, "\\" + name))


def _root(cursor: Cursor) -> Term:
    degree: Term | None = None
    if cursor.take("["):
        degree = cursor.deeper(sums.read)
        cursor.expect("]")
    if cursor.sees("("):
        cursor.at += 1
        inside = cursor.deeper(lambda c: brackets.sequence(c, "("))
    else:
        inside = atoms.argument(cursor)
    if degree is None:
        return Call("sqrt", (inside,))
    return Call("root", (inside, degree))
