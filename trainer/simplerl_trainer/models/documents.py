"""The JSON files of a model's folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure


def read(folder: Path, name: str, whose: str) -> dict[str, Any]:
    """The object in a file of a folder. `whose` begins the sentence about a file that is missing or is none.

    Raises TrainerFailure(INVALID_INPUT).
    """
    path = folder / name
    if not path.exists():
        raise _invalid(f"{whose} has no {name}: give a whole Hugging Face folder")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise _invalid(f"{whose} has a {name} that cannot be read ({e}): mend or replace it") from e
    if not isinstance(document, dict):
        raise _invalid(f"{whose} has a {name} that is not an object: mend or replace it")
    return document


def architecture(config: Mapping[str, Any]) -> tuple[str, list[str]]:
    """model_type and architectures of a config.json, whatever stands in their place."""
    named = config.get("architectures") or []
    return str(config.get("model_type")), [str(a) for a in (named if isinstance(named, list) else [named])]


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
