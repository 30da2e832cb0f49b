"""The table of docs/chart.md, made from the comments of values.yaml."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simplerl_api import yaml12


@dataclass(frozen=True)
class Value:
    """One value of the chart, by its dotted path; a section has no default of its own."""

    path: str
    comment: str
    default: Any
    section: bool


def values(text: str) -> Iterator[Value]:
    """All keys of values.yaml that bear a comment, in order."""
    document = yaml12.load(text)
    keys = dict(_comments(text))
    for path, comment in keys.items():
        if comment:
            section = any(other.startswith(f"{path}.") and keys[other] for other in keys)
            yield Value(path, comment, _at(document, path), section)


def silent(text: str) -> list[str]:
    """Keys without a comment, of their own or of what they are a part of."""
    keys = dict(_comments(text))
    sections = {path.rpartition(".")[0] for path, comment in keys.items() if comment}
    return [
        path
        for path, comment in keys.items()
        if not comment and path not in sections and not keys.get(path.rpartition(".")[0])
    ]


def table(text: str) -> str:
    rows = [
        f"| {value.path} | {'' if value.section else f'`{json.dumps(value.default)}`'} | {value.comment} |"
        for value in values(text)
    ]
    return "\n".join(["| value | default | |", "| --- | --- | --- |", *rows]) + "\n"


def _comments(text: str) -> Iterator[tuple[str, str]]:
    stack: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if found := re.match(r"\s*# ?(.*)", line):
            comment.append(found[1])
        elif found := re.match(r"(\s*)(\w+):", line):
            depth = len(found[1])
            stack = [(d, key) for d, key in stack if d < depth] + [(depth, found[2])]
            yield ".".join(key for _, key in stack), " ".join(comment)
            comment = []
        else:
            comment = []


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document[key]
    return document
