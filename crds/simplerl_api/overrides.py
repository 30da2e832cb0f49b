"""`--set path=value`: one field of a job replaced before it is read."""

import copy
import re
from collections.abc import Sequence
from typing import Any

from simplerl_api import yaml12


def apply(document: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A copy of a job's document with settings such as `spec.training.steps=3` or `rewards[0].weight=2` applied.

    A path that does not start with `spec` or `metadata` is taken within the spec. The value is read as YAML.
    Raises ValueError naming the setting that cannot be applied.
    """
    document = copy.deepcopy(document)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise ValueError(f"--set {setting}: write path=value, for example training.steps=3")
        keys = _keys(setting, path)
        if keys[0] not in ("spec", "metadata"):
            keys = ["spec", *keys]
        _put(setting, document, keys, _value(text))
    return document


def _value(text: str) -> Any:
    if not text.strip():
        return ""
    documents = yaml12.load_all(text)
    return documents[0] if documents else None  # `null` is an empty document


def _keys(setting: str, path: str) -> list[str | int]:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(\[\d+\]|\.[A-Za-z_][A-Za-z0-9_/-]*)*", path):
        raise ValueError(f"--set {setting}: {path} is not a path of names joined by dots, with [n] for list items")
    return [int(k[1:-1]) if k.startswith("[") else k for k in re.findall(r"\[\d+\]|[^.\[\]]+", path)]


def _put(setting: str, node: Any, keys: list[str | int], value: Any) -> None:
    *parents, last = keys
    for key in parents:
        if isinstance(node, dict) and isinstance(key, str):
            node = node.setdefault(key, {})
        elif isinstance(node, list) and isinstance(key, int) and key < len(node):
            node = node[key]
        else:
            raise ValueError(f"--set {setting}: there is no {key} to set something in")
    if isinstance(node, dict) and isinstance(last, str):
        node[last] = value
    elif isinstance(node, list) and isinstance(last, int) and last <= len(node):
        node[last : last + 1] = [value]
    else:
        raise ValueError(f"--set {setting}: there is no place for {last}")
