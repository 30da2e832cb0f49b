"""The parameters' shapes of a model folder, from the headers of its safetensors files alone.

https://huggingface.co/docs/safetensors/index#format
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure

_LARGEST_HEADER = 100_000_000
"""Bytes; the format's own bound."""


def read(folder: Path) -> Mapping[str, tuple[int, ...]]:
    """The shape of each parameter by its name.

    Raises TrainerFailure(INVALID_INPUT) naming a file that is not in the format.
    """
    return {name: shape for file in sorted(folder.glob("*.safetensors")) for name, shape in _header(file).items()}


def _header(file: Path) -> Mapping[str, tuple[int, ...]]:
    try:
        with file.open("rb") as opened:
            (size,) = struct.unpack("<Q", opened.read(8))
            if size > _LARGEST_HEADER:
                raise ValueError(f"its header would have {size} bytes")
            entries = json.loads(opened.read(size))
        return {name: tuple(entry["shape"]) for name, entry in entries.items() if name != "__metadata__"}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, struct.error) as e:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT, f"model: {file} is not a safetensors file ({e}): copy it anew"
        ) from e
