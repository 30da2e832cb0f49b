"""The one YAML loader: YAML 1.2, in which 5e-7 is a number and `on` is a word."""

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


def load(text: str) -> Any:
    """The single document of a YAML text as plain data.

    Raises ValueError naming the line where the text is not YAML, holds a duplicate key or several documents.
    """
    documents = load_all(text)
    if len(documents) != 1:
        raise ValueError(f"expected one YAML document, found {len(documents)}: put each job in a file of its own")
    return documents[0]


def load_all(text: str) -> list[Any]:
    """The documents of a YAML text that are not empty, as plain data."""
    yaml = YAML(typ="safe", pure=True)
    try:
        return [d for d in yaml.load_all(text) if d is not None]
    except YAMLError as e:
        raise ValueError(f"not YAML: {' '.join(str(e).split())}") from e


def load_file(path: Path) -> Any:
    """The single document of a YAML file."""
    return load(path.read_text(encoding="utf-8-sig"))


def dump(document: Any) -> str:
    """Plain data as YAML, keys in their order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 120
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()
