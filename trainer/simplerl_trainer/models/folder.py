"""A small model folder as bytes, for its way to other nodes."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name; it must hold files alone."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes the files into a new folder, which appears whole or not at all; one that exists is left as it is.

    Everyone may read them: processes of other users mount such folders.
    """
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in files.items():
            path = partial / name
            if path.parent != partial:
                raise ValueError(f"{name} is not the name of a file in the folder itself")
            with path.open("wb") as file:
                file.write(data)
                os.fsync(file.fileno())
            path.chmod(0o644)
        partial.chmod(0o755)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was first, with the same files
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
