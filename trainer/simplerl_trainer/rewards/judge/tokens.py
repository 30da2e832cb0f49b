"""The tokens of an answer in the one dialect."""

import re
from dataclasses import dataclass

from simplerl_trainer.rewards.judge import units
from simplerl_trainer.rewards.judge.dialect import TEXTS
from simplerl_trainer.rewards.judge.terms import Unreadable

LONGEST = 4000
"""Tokens of an answer that are read; no answer to a question is as long."""

UNARY = frozenset(
    ["sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "sinh", "cosh", "tanh",
     "log", "ln", "exp", "asin", "acos", "atan", "lg", "cbrt", "abs", "floor", "ceil", "det"]
)  # fmt: skip
"""Functions of one argument that are read."""
FUNCTIONS = UNARY | {
    "sqrt",
    "max",
    "min",
    "gcd",
    "lcm",
    "arcsec",
    "arccsc",
    "arsinh",
    "operatorname",
}
"""All names that begin a function, also of those that are not read."""
_WORDS = {"pi": "\\pi", "infinity": "\\infty", "inf": "\\infty", "oo": "\\infty", "theta": "\\theta",
          "alpha": "\\alpha",
          "beta": "\\beta", "gamma": "\\gamma", "lambda": "\\lambda", "times": "\\times", "sqrt": "\\sqrt",
          "union": "\\cup", "frac": "\\frac", "mod": "\\mod"}  # fmt: skip
_SEPARATORS = frozenset({"and", "or"})
_TAKING_A_DIGIT = frozenset({"^", "_", "frac", "sqrt", "binom"})
"""After these a number's digits need not belong together."""

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:\d{1,3}(?:,\d{3})+(?![\d])(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![\d.]))?)
    |\\(?P<command>[A-Za-z]+)
    |(?P<escaped>\\[{}%$&#_|\\])
    |(?P<letters>[A-Za-z]+)
    |(?P<sign><=|>=|!=|==|\*\*|[-+*/^_=<>(){}\[\],;:|!&%'.?"])
    """,
    re.VERBOSE,
)
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:\s+\d{3})+(?!,?\d|\s*/\s*\d)(?:\.\d+)?")
"""Thousands with space between them; 3 456/789 is a mixed number."""
_AFTER_UNIT = re.compile(r"\s*(?:[.,;/)}\]^]|$|and\b|or\b|per\b)")
_TEXT_ARGUMENT = re.compile(r"\s*\{")
_UPRIGHT = frozenset(("mathrm", "operatorname", "mathbf", "mathit", "mathsf", "boldsymbol", "bm", "mathbb", "mathcal"))


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its kind is `number`, `letter`, `command`, `word` or `sign`."""

    kind: str
    text: str
    spaced: bool = False
    """Whether space stands before it."""


def tokens(text: str, *, words: bool = False) -> list[Token]:
    """`words`: it is the inside of `\\text{…}`, where letters are words, not variables.

    Raises Unreadable for what no answer is written with.
    """
    found: list[Token] = []
    place, spaced, depth = 0, False, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Unreadable(f"{text[place]!r} is no sign of an answer")
        if len(found) > LONGEST:
            raise Unreadable(f"it is longer than {LONGEST} signs")
        place = match.end()
        kind, value = str(match.lastgroup), match[0]
        if kind == "space":
            spaced = True
            continue
        if kind == "number":
            grouped = _GROUPED.match(text, match.start())
            if grouped is not None and not (found and found[-1].text in _TAKING_A_DIGIT):
                value, place = "".join(grouped[0].split()), grouped.end()
            # (1,234) has two members: groups of three make a number outside brackets only
            if depth and "," in value:
                value = value[: value.index(",")]
                place = match.start() + len(value)
            found.append(Token("number", value.replace(",", ""), spaced))
        elif kind == "command":
            place = _command(text, match["command"], place, spaced, found)
        elif kind == "escaped":
            if value == "\\{":
                depth += 1
            elif value == "\\}":
                depth = max(0, depth - 1)
            found.append(Token("sign", value, spaced))
        elif kind == "letters":
            if value in ("min", "sec") and (words or _counts(found, text, place)):
                found.append(Token("word", value, spaced))
            else:
                _letters(value, spaced, found, words)
        else:
            if value in "([":
                depth += 1
            elif value in ")]":
                depth = max(0, depth - 1)
            found.append(Token("sign", {"==": "=", "!=": "\\ne", "**": "^"}.get(value, value), spaced))
        spaced = False
    return found


def _command(text: str, name: str, place: int, spaced: bool, found: list[Token]) -> int:
    """Adds the token of a command whose name ends at `place`; returns where the next token begins."""
    if name in TEXTS or name in _UPRIGHT:
        opening = _TEXT_ARGUMENT.match(text, place)
        if opening is None:
            return place
        end = text.find("}", opening.end())
        if end < 0:
            raise Unreadable(f"\\{name} has no end")
        inside = text[opening.end() : end]
        if "{" in inside:
            raise Unreadable(f"\\{name} holds more than words")
        stripped = inside.strip()
        if name in ("mathbb", "mathcal"):
            found.append(Token("command", f"{name}{{{stripped}}}", spaced))
        elif name in _UPRIGHT and len(stripped) == 1 and not inside.startswith(" ") and not units.letter(stripped):
            found.extend(tokens(stripped))
        elif name in _UPRIGHT and stripped in FUNCTIONS:
            found.append(Token("command", stripped, spaced))
        else:
            found.extend(tokens(stripped, words=True))
        return end + 1
    found.append(Token("command", name, spaced))
    return place


def _counts(found: list[Token], text: str, place: int) -> bool:
    """Whether what ends at `place` is a unit after its number: `45 min` are minutes, `\\min` is a function."""
    return bool(found) and found[-1].kind == "number" and _AFTER_UNIT.match(text, place) is not None


def _letters(run: str, spaced: bool, found: list[Token], words: bool) -> None:
    """A run of letters: a function, a word, or variables that are multiplied."""
    if len(run) == 1:
        found.append(Token("word" if words else "letter", run, spaced))
    elif run.lower() in _SEPARATORS:
        found.append(Token("sign", ",", spaced))
    elif run in _WORDS:
        found.append(Token("command", _WORDS[run][1:], spaced))
    elif run in FUNCTIONS:
        found.append(Token("command", run, spaced))
    elif not words and _is_product(run, spaced, found):
        found.extend(Token("letter", letter, spaced and i == 0) for i, letter in enumerate(run))
    else:
        found.append(Token("word", run, spaced))


_NOT_PRODUCTS = frozenset(
    [
        "no",
        "on",
        "is",
        "it",
        "at",
        "to",
        "so",
        "an",
        "in",
        "if",
        "of",
        "by",
        "up",
        "us",
        "we",
        "yes",
        "all",
        "odd",
        "one",
        "two",
        "six",
        "ten",
        "but",
        "not",
        "any",
        "red",
        "sum",
        "day",
        "men",
        "the",
        "per",
        "ago",
        "sq",
        "cu",
        "am",
    ]
)


def _is_product(run: str, spaced: bool, found: list[Token]) -> bool:
    if units.known(run) or run.lower() in _NOT_PRODUCTS:
        return False
    counted = spaced and bool(found) and found[-1].kind == "number" and run.islower() and _vowels(run)
    if len(run) <= 3:
        return len(run) < 3 or not counted  # 5 box is a number of boxes, 5abc a product
    # 12abcd is a product, 12 apples and Monday are not
    return not spaced and bool(found) and found[-1].kind in ("number", "letter") and len(run) <= 5 and not _vowels(run)


def _vowels(run: str) -> bool:
    return any(c in "aeiouAEIOU" for c in run)
