"""Answers read: from tokens to terms. A parser of our own, because those at hand run what they read as Python
(sympy's `parse_expr`) or read parts of it and forget the rest.

It is one of recursive descent: a module reads one kind of term from the cursor and leaves what is smaller to the next:
members, quantities, sums, products, powers, atoms. Atoms are numbers, variables, brackets, commands and functions;
as these hold members and sums again, the modules import each other.
"""

import re

from simplerl_trainer.rewards.judge.parsing import members
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Bare, Matrix, Term, Unreadable
from simplerl_trainer.rewards.judge.tokens import tokens

_ENVIRONMENTS = ("pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix", "array")
_MATRIX = re.compile(
    r"[(\[]?\s*\\begin\{(" + "|".join(_ENVIRONMENTS) + r")\}(?:\{[clr|]*\})?(.*?)\\end\{\1\}\s*[)\]]?", re.DOTALL
)


def parse(text: str) -> Term:
    """The term that a text in the one dialect stands for.

    Raises Unreadable.
    """
    if "\\begin" in text and (found := _whole_matrix(text)) is not None:
        return found
    cursor = Cursor(tokens(text))
    items = members.read(cursor)
    if not items:
        raise Unreadable("it is empty")
    cursor.finish()
    return items[0] if len(items) == 1 else Bare(tuple(items))


def _whole_matrix(text: str) -> Term | None:
    match = _MATRIX.fullmatch(text)
    if match is None:
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", match[2]) if row.strip()]
    cells = tuple(tuple(parse(cell.strip()) for cell in row.split("&")) for row in rows)
    if not cells or len({len(row) for row in cells}) != 1:
        raise Unreadable("its rows have different lengths")
    return Matrix(cells)
