"""The parameters' shapes of a model folder, from the headers of its safetensors files alone.

https://huggingface.co/docs/safetensors/index#format
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure

_LFS = b"version https://git-lfs"
"""What a pointer of Git LFS begins with."""
_LARGEST_HEADER = 100_000_000
"""Bytes; the format's own bound."""


def read(folder: Path, field: str = "model") -> Mapping[str, tuple[int, ...]]:
    """The shape of each parameter by its name; `field` names the folder in the spec.

    Raises TrainerFailure(INVALID_INPUT) naming a file that is not in the format or has another length than its header
    says, as a download that was cut short.
    """
    return {
        name: shape for file in sorted(folder.glob("*.safetensors")) for name, shape in _header(file, field).items()
    }


def _header(file: Path, field: str) -> Mapping[str, tuple[int, ...]]:
    try:
        with file.open("rb") as opened:
            first = opened.read(8)
            if _LFS.startswith(first) and first:
                raise ValueError("it is a pointer of Git LFS, without the weights")
            (size,) = struct.unpack("<Q", first)
            if size > _LARGEST_HEADER:
                raise ValueError(f"its header would have {size} bytes")
            entries = json.loads(opened.read(size))
        tensors = {name: entry for name, entry in entries.items() if name != "__metadata__"}
        whole = 8 + size + max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
        if file.stat().st_size != whole:
            raise ValueError(f"it has {file.stat().st_size} bytes, and its header says {whole}")
        return {name: tuple(entry["shape"]) for name, entry in tensors.items()}
    except (
        OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, struct.error
    ) as e:  # fmt: skip
        raise TrainerFailure(
            FailureReason.INVALID_INPUT, f"{field}: {file} is not a safetensors file ({e}): copy it anew"
        ) from e
