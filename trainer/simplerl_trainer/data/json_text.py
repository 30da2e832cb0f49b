"""JSON as people write it: numbers stay as they were written, and a key that stands twice in an object is a fault.

Python would take the second of the two without a word, and a run would train on answers that nobody meant.
"""

import json
from typing import Any


class NumberText(str):
    """A JSON number as it was written: `0.50` stays `0.50`."""

    __slots__ = ()


class KeyTwice(ValueError):
    """An object in which a key stands twice; `item` is the number, from 1, of the array's item that holds it."""

    def __init__(self, key: str, item: int | None) -> None:
        super().__init__(f"holds the key {json.dumps(key, ensure_ascii=False)} twice: leave one of the two out")
        self.item = item


def loads(text: str) -> Any:
    """The value in a text. Raises KeyTwice; JSONDecodeError and RecursionError as json.loads does."""
    twice: list[tuple[str, dict[str, Any]]] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.append((next(key for i, key in enumerate(keys) if key in keys[:i]), found))
        return found

    value = json.loads(text, parse_int=NumberText, parse_float=NumberText, object_pairs_hook=once)
    if twice:
        key, where = twice[0]
        items = value if isinstance(value, list) else []
        raise KeyTwice(key, next((n for n, item in enumerate(items, start=1) if _holds(item, where)), None))
    return value


def _holds(value: Any, wanted: dict[str, Any]) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is wanted or any(_holds(member, wanted) for member in inner)
