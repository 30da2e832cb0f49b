"""Plain data: what JSON can say. A YAML document can say more, which no API server would take."""

import json
from typing import Any

DEEPEST = 100
"""Objects and lists within one another; a job has ten or so."""
MOST = 100_000
"""Values of one document, aliases followed: a few lines of aliases to aliases stand for billions."""


def plain(value: Any) -> Any:
    """A copy as JSON has it: keys are texts, and what an alias stands for is there anew.

    Raises ValueError naming the place of what JSON cannot say.
    """
    return _Copy().of(value, "", 0)


def kind(value: Any) -> str:
    """What a value is, in a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case bytes():
            return "binary data"
        case _:
            return f"a {type(value).__name__}"


class _Copy:
    """One document on its way."""

    def __init__(self) -> None:
        self._values = 0

    def of(self, value: Any, place: str, depth: int) -> Any:
        self._values += 1
        if depth > DEEPEST:
            raise ValueError(
                f"{place[:40]}… is more than {DEEPEST} objects and lists deep: write it flat, and no alias within "
                "what it stands for"
            )
        if self._values > MOST:
            raise ValueError(f"it has more than {MOST:,} values, aliases followed: write fewer")
        match value:
            case dict():
                return {self._key(k, place): self.of(v, _member(place, k), depth + 1) for k, v in value.items()}
            case list():
                return [self.of(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]
            case str():
                return _text(value, place)
            case None | bool() | int() | float():
                return value
        raise ValueError(f"{_named(place)} is {kind(value)}: write a text, a number, true, false, a list or an object")

    def _key(self, key: Any, place: str) -> str:
        if isinstance(key, str):
            return _text(key, place)
        if key is None or isinstance(key, bool | int | float):
            return json.dumps(key)
        raise ValueError(f"{_named(place)} has {kind(key)} as a key: write a text")


def _text(value: str, place: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as e:
        raise ValueError(f"{_named(place)} holds half a surrogate pair at character {e.start + 1}: remove it") from e
    return value


def _member(place: str, key: Any) -> str:
    return f"{place}.{key}" if place else str(key)


def _named(place: str) -> str:
    return place or "the document"
