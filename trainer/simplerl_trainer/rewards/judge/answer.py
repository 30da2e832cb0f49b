"""The term that an answer's text stands for."""

import re

from simplerl_trainer.rewards.judge import parsing, text
from simplerl_trainer.rewards.judge.terms import (
    Bare,
    Based,
    Binder,
    Call,
    Huge,
    Num,
    Relation,
    Seq,
    Sym,
    Term,
    Text,
    Unreadable,
    parts,
)

LONGEST = 20_000
"""Characters of an answer that are read."""

LONGEST_NUMBER = 4000
"""Digits; Python reads no more than 4300."""

_DIGITS = re.compile(r"-?[\d,.]+")
_BASED = re.compile(
    r"\(?\s*([0-9A-Za-z]*[0-9][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)?)\s*\)?\s*(?:_\s*\{?\s*(?:\\text\s*\{)?\s*([0-9]{1,3}|[a-z]{3,12})\s*\}*"
    r"|(?:\\text\s*\{)?\s*(?:in\s+)?base[\s-]*([0-9]{1,2}|[a-z]{3,12})\s*\}?)"
)
_BASES = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "sixteen": "16",
}  # fmt: skip
_ORDINAL = re.compile(
    r"(?<![A-Za-z0-9.])(\d[\d,]*)\s*(?:\^\s*\{?)?\s*(?:\\(?:text|mathrm|textsuperscript)\s*\{)?\s*(?:st|nd|rd|th)\b\s*\}*"
)
_NAME = re.compile(r"[A-Za-z]")
_ARTICLE = re.compile(r"^(?:an?|the)\s+(?=[A-Za-z]{2})", re.IGNORECASE)
_LABEL = re.compile(r"(?:^|[,;]?\s*\b(?:and|or)\b\s+|[,;]\s*)\(?([a-hivA-H]{1,3})\)\s*(?=\S)")
_LABEL_IN_TEXT = re.compile(r"\\text\s*\{\s*((?:and\s+|or\s+)?\(?[a-hiv]{1,3}\)\s*)\}")
_LABELS = (("a", "b", "c", "d", "e", "f", "g", "h"), ("i", "ii", "iii", "iv", "v", "vi"))
_INTRODUCED = re.compile(r"(?:the\s+)?(?:final\s+)?answer\s*(?:is|:)\s*:?\s*", re.IGNORECASE)
_INTRODUCED_IN_TEXT = re.compile(r"\\text\s*\{\s*(?:the\s+)?(?:final\s+)?answer\s*(?:is|:)\s*:?\s*\}", re.IGNORECASE)
_EQUATION_OF_NAMES = re.compile(r"[A-Za-z]{2,}\s*=\s*[A-Za-z]{2,}")


def read(canonical: str) -> Term:
    """The term of a text in the one dialect.

    Raises Unreadable.
    """
    found = stripped(canonical)
    if not found:
        raise Unreadable("it is empty")
    if len(found) > LONGEST_NUMBER and _DIGITS.fullmatch(found):
        raise Huge(f"a number of more than {LONGEST_NUMBER} digits is compared by its text only")
    if len(found) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST} characters")
    if len(found) < 100 and (based := _BASED.fullmatch(found)) is not None:
        base = (based[2] or based[3]).lower()
        base = _BASES.get(base, base)
        if base.isdigit():
            return Based(based[1].upper(), base)
    if (date := text.date(found)) is not None:
        return Text(date)
    found = _without_labels(_ARTICLE.sub("", found))
    if "th" in found or "st" in found or "nd" in found or "rd" in found:
        found = _ORDINAL.sub(r"\1", found)
    try:
        return _sound(parsing.parse(found))
    except Unreadable:
        if (words := _listed(found)) is not None:
            return words
        if (value := _value_at_end(found)) is not None:
            return value
        raise


def _without_labels(found: str) -> str:
    """`a) 3, b) 5` and `(i) 3, (ii) 5` without the labels of the parts; all else as it is."""
    if ")" not in found:
        return found
    plain = _LABEL_IN_TEXT.sub(r"\1", found)
    labels = list(_LABEL.finditer(plain))
    if len(labels) < 2 or labels[0].start() > 0:
        return found
    names = tuple(label[1].lower() for label in labels)
    if not any(names == order[: len(names)] for order in _LABELS):
        return found
    return _LABEL.sub(lambda m: "" if m.start() == 0 else ", ", plain)


def _value_at_end(found: str) -> Term | None:
    """The value of `P(X > 2) = 0.5`, whose left side is not read: it is a name."""
    name, sign, value = found.rpartition("=")
    if not sign or not value.strip() or name.rstrip().endswith(("<", ">", "!", "=")) or not _NAME.search(name):
        return None
    try:
        return Relation((Sym("".join(name.split())), _sound(parsing.parse(value.strip()))), ("=",))
    except Unreadable:
        return None


def _sound(term: Term) -> Term:
    """The term, where functions are applied to expressions only. `A(1, 2)` is a point with its name."""
    match term:
        case Call("*", (Sym(), Seq(left, right, (_, _, *_)) as members)):
            return Relation((term.args[0], members), ("=",) if left + right == "()" else ("in",))
    for part in parts(term):
        if isinstance(part, Call) and not all(isinstance(a, Num | Sym | Call | Binder) for a in part.args):
            raise Unreadable(f"{part.name} is applied to what is no expression")
    return term


def stripped(canonical: str) -> str:
    """Without what stands around an answer: `the answer is`, markdown's stars, full stops."""
    found = canonical.strip()
    for _ in range(3):
        before = found
        found = found.strip().strip("`").strip()
        while found.endswith("\\\\"):  # a line's end
            found = found[:-2].rstrip()
        if found.startswith("**") or found.endswith("**"):
            found = found.strip("*").strip()
        while found and found[-1] in ".,;:!?" and not found.endswith("\\!") and not _factorial(found):
            found = found[:-1].rstrip()
        if (words := _INTRODUCED_IN_TEXT.match(found)) is not None:
            found = found[words.end() :]
        if (introduced := _INTRODUCED.match(found)) is not None:
            found = found[introduced.end() :]
        if found == before:
            return found
    return found


def _factorial(found: str) -> bool:
    return (
        found.endswith("!")
        and len(found) > 1
        and ((found[-2].isalnum() and not re.search(r"[A-Za-z]{2,}!$", found)) or found[-2] == ")")
    )


def _listed(found: str) -> Term | None:
    """Words, or several of them."""
    whole = text.words(found)
    if whole is None:
        return Text(re.sub(r"\s+", "", found)) if _EQUATION_OF_NAMES.fullmatch(found) else None
    if re.search(r"\d", found):
        return Text(whole)
    members = [m for m in re.split(r",|;|\band\b|\bor\b", text.unwrapped(found).strip("()")) if m.strip()]
    if len(members) < 2 or any(len(m.split()) > 3 for m in members):
        return Text(whole)
    texts = [text.words(m + "  ") or m.strip().lower() for m in members]
    return Bare(tuple(Text(t) for t in texts))
