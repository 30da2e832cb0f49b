"""The answers in boxes: `\\boxed{5}`, `\\boxed 5`, `\\fbox{5}`."""

import re
from dataclasses import dataclass

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_UNBRACED = re.compile(
    r"[ \t]*(-?\d[\d,]*(?:\.\d+)?%?|-?\.\d+|\\(?:frac|dfrac|tfrac)\s*(?:\{[^{}]*\}|\d)\s*(?:\{[^{}]*\}|\d)"
    r"|\\sqrt\s*(?:\{[^{}]*\}|\d)|\\[A-Za-z]+|[A-Za-z](?![A-Za-z])|\([^()\n]{1,60}\))"
)
_LABEL_WORDS = frozenset(
    [
        "and",
        "or",
        "for",
        "part",
        "parts",
        "case",
        "cases",
        "question",
        "in",
        "the",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "g",
        "h",
        "i",
        "ii",
        "iii",
        "iv",
        "v",
        "vi",
        "x",
        "y",
        "z",
        "t",
        "n",
        "m",
        "k",
        "p",
        "q",
        "r",
        "s",
        "u",
        "w",
        "first",
        "second",
        "third",
        "respectively",
        "as",
        "well",
        "also",
    ]
)
_PARTS = frozenset({"part", "parts", "case", "cases", "question", "subquestion"})
_PART_WORDS = frozenset({"we", "get", "have", "find", "obtain", "it", "is", "answer", "to", "of", "that", "value"})
"""Between boxes these are a label's words only where a part is named: `and for part (b) we get`."""
_GAP_CUT = re.compile(
    r"\\(?:text|mbox|textrm|mathrm|textbf)\s*\{([^{}]*)\}|\\(?:quad|qquad|left|right|,|;|!|:| )|\\[()\[\]\\]|[$&~*]"
)
_GAP = re.compile(r"[\s,;.:()\[\]=\-0-9A-Za-z_{}]*")
_GAP_NAME = re.compile(r"(?<![A-Za-z])([A-Za-z](?:_\{?\w\}?)?)\s*=\s*$")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a response."""

    text: str = ""
    """The answer; empty where there is none."""
    boxed: bool = False
    """Whether there is a box, with an answer or not."""
    why: str = ""
    """Why there is no answer."""


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    end: int
    content: str | None
    """None where its brace has no partner."""


def answer(text: str) -> Reading | None:
    """The answer in the last box and those that it forms a list with; None where there is no box."""
    found = _outermost(text)
    if not found:
        return None
    last = found[-1]
    if last.content is None or not _inner(last.content):
        return Reading(boxed=True, why="the last box has no end" if last.content is None else "the last box is empty")
    members = [last]
    for box in reversed(found[:-1]):
        if box.content is None or not _joins(text[box.end : members[-1].start]):
            break
        members.append(box)
    members.reverse()
    contents: dict[str, None] = {}
    for i, box in enumerate(members):
        content = _inner(box.content or "")
        before = text[max(0, box.start - 30) : box.start] if i == 0 else text[members[i - 1].end : box.start]
        name = _GAP_NAME.search(before.replace("$", " ").replace("\\(", " "))
        if len(members) > 1 and name is not None and "=" not in content:
            content = f"{name[1]} = {content}"
        if content:
            contents[content] = None
    return Reading(", ".join(contents), boxed=True)


def last_box(text: str) -> str | None:
    """The content of the last box; None where there is none, or it has no end."""
    boxes = _outermost(text)
    return boxes[-1].content if boxes else None


def _outermost(text: str) -> list[_Box]:
    if _BOX.search(text) is None:
        return []
    found: list[_Box] = []
    place, partners = 0, _partners(text)
    while (mark := _BOX.search(text, place)) is not None:
        box = _box_at(text, mark.start(), mark.end(), partners)
        if box is None:
            place = mark.end()
            continue
        found.append(box)
        # what follows an open brace may hold boxes that are complete: the last one decides
        place = mark.end() if box.content is None else box.end
    return found


def _box_at(text: str, start: int, after: int, partners: dict[int, int]) -> _Box | None:
    match = re.compile(r"\s*\{").match(text, after)
    if match is None:
        plain = _UNBRACED.match(text, after)
        return _Box(start, plain.end(), plain[1]) if plain is not None else _Box(start, after, "")
    closing = partners.get(match.end() - 1)
    if closing is None:
        return _Box(start, len(text), None)
    return _Box(start, closing + 1, text[match.end() : closing])


def _partners(text: str) -> dict[int, int]:
    """Where the brace that opens at a place is closed: found once, since each of many boxes may be open to the end."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACES.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:  # \{ and \} are printed braces
            found[opened.pop()] = brace.start()
    return found


def _inner(content: str) -> str:
    """What a box holds; of a box in a box, what the inner one holds."""
    found = content.strip()
    for _ in range(5):
        mark = _BOX.search(found)
        if mark is None:
            return found
        inner = _box_at(found, mark.start(), mark.end(), _partners(found))
        if inner is None or inner.content is None:
            return ""
        found = (found[: inner.start] + " " + inner.content + found[inner.end :]).strip()
    return found


def _joins(gap: str) -> bool:
    """Whether boxes with this between them form one list."""
    if len(gap) > 80:
        return False
    plain = _GAP_CUT.sub(lambda m: f" {m[1] or ''} ", gap)
    if not _GAP.fullmatch(plain):
        return False
    words = {w.lower() for w in re.findall(r"[A-Za-z]+", plain)}
    if not words <= (_LABEL_WORDS | _PART_WORDS if words & _PARTS else _LABEL_WORDS) or re.search(r"\d{2}", plain):
        return False
    # = alone goes on with a calculation; `y =` is a label
    return plain.count("=") == 0 or bool(_GAP_NAME.search(plain))
