"""`--set path=value`: one field of a job replaced before it is read."""

import copy
import re
from collections.abc import Sequence
from typing import Any

from simplerl_api import yaml12
from simplerl_api.plain import kind

_SHOWN = 120
"""Characters of a setting in a message about its value."""


def apply(document: Any, settings: Sequence[str]) -> Any:
    """A copy of a job's document with settings such as `spec.training.steps=3` or `rewards[0].weight=2` applied.

    A path that does not start with `spec` or `metadata` is taken within the spec. The value is read as YAML.
    Raises ValueError naming the setting that cannot be applied.
    """
    if not isinstance(document, dict):
        return document  # validation has its sentence
    document = copy.deepcopy(document)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise ValueError(f"--set {setting}: write path=value, for example training.steps=3")
        keys = _keys(setting, path)
        if keys[0] not in ("spec", "metadata"):
            keys = ["spec", *keys]
        _put(setting, document, keys, _value(setting, text))
    return document


def _value(setting: str, text: str) -> Any:
    if not text.strip():
        return ""
    try:
        documents = yaml12.load_all(text)
    except ValueError as e:
        raise ValueError(f"--set {setting[:_SHOWN]}: its value is {e}") from e
    if len(documents) > 1:
        raise ValueError(f"--set {setting[:_SHOWN]}: its value is {len(documents)} YAML documents: give one")
    return documents[0] if documents else None  # `null` is an empty document


def _keys(setting: str, path: str) -> list[str | int]:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(\[\d+\]|\.[A-Za-z_][A-Za-z0-9_/-]*)*", path):
        raise ValueError(f"--set {setting}: {path} is not a path of names joined by dots, with [n] for list items")
    return [int(k[1:-1]) if k.startswith("[") else k for k in re.findall(r"\[\d+\]|[^.\[\]]+", path)]


def _put(setting: str, node: Any, keys: list[str | int], value: Any) -> None:
    where = ""
    for key, following in zip(keys, [*keys[1:], None], strict=True):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(key, str):
            if not isinstance(node, dict):
                raise ValueError(f"--set {setting}: {where} is {kind(node)}, which has no {key}: {_instead(node)}")
            if node.get(key) is None:
                node[key] = empty
        else:
            if not isinstance(node, list):
                raise ValueError(f"--set {setting}: {where} is {kind(node)}, which has no [{key}]: {_instead(node)}")
            if key > len(node):
                raise ValueError(f"--set {setting}: {where} ends before [{key}]: use at most [{len(node)}]")
            if key == len(node):
                node.append(empty)
        if following is None:
            node[key] = value
        where = f"{where}[{key}]" if isinstance(key, int) else f"{where}.{key}".removeprefix(".")
        node = node[key]


def _instead(node: Any) -> str:
    match node:
        case list():
            return "name one of its items, from [0] on"
        case dict():
            return "name one of its fields"
        case _:
            return "end the path there"
