"""The manifest of a checkpoint: its files with sizes and checksums, written last. A checkpoint is complete with it."""

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

NAME = "manifest.json"
FORMAT = 2
"""2: weights and optimizer states are the same for any number of ranks and any ZeRO stage (shards.py)."""
_READERS = 8
"""Files that are compared at once."""


class Incomplete(Exception):
    """A checkpoint that cannot be used; the message names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a checkpoint."""

    size: int
    """Bytes."""
    sha256: str
    """Hexadecimal."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole checkpoint."""

    step: int
    """Finished steps."""
    files: dict[str, File]
    """By path, relative to the checkpoint's folder."""

    def to_json(self) -> str:
        files = {name: {"size": f.size, "sha256": f.sha256} for name, f in sorted(self.files.items())}
        return json.dumps({"format": FORMAT, "step": self.step, "files": files}, indent=2) + "\n"


def from_json(text: str) -> Manifest:
    """The manifest in a text. Raises Incomplete naming what does not fit."""
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise Incomplete(f"{NAME} has format {document['format']}, this version reads {FORMAT}")
        files = {name: File(int(f["size"]), str(f["sha256"])) for name, f in document["files"].items()}
        return Manifest(int(document["step"]), files)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
        raise Incomplete(f"{NAME} cannot be read: {e!r}") from e


def complete(folder: Path, step: int, files: Mapping[str, File]) -> Manifest:
    """Writes the manifest of the checkpoint in `folder`, at once and for good.

    `files` are all its files as their writers left them (`settled`), relative to `folder`. Raises Incomplete naming a
    file that is not there, has another size, is not named, or lies outside of the folder.
    """
    for name, file in files.items():
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise Incomplete(f"{name} does not lie in {folder}")
        if (size := _size(folder / name)) is None:
            raise Incomplete(f"{folder / name} was not written")
        if size != file.size:
            raise Incomplete(f"{folder / name} has {size} bytes instead of {file.size}")
    present = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {NAME}
    if strange := present - files.keys():
        raise Incomplete(f"{folder / min(strange)} belongs to no part of the checkpoint")
    manifest = Manifest(step, dict(files))
    replace_file(folder / NAME, manifest.to_json())
    return manifest


def settled(path: Path) -> File:
    """A file that was written, once it is on disk for good; called where it was written."""
    sync(path)
    with path.open("rb") as f:
        return File(path.stat().st_size, hashlib.file_digest(f, "sha256").hexdigest())


def read(folder: Path) -> Manifest:
    """The manifest of a checkpoint. Raises Incomplete where there is none."""
    try:
        text = (folder / NAME).read_text(encoding="utf-8")
    except FileNotFoundError as e:
        raise Incomplete(f"{folder} has no {NAME}: its writer did not finish") from e
    except (OSError, UnicodeDecodeError) as e:
        raise Incomplete(f"{folder / NAME} cannot be read: {e}") from e
    try:
        return from_json(text)
    except Incomplete as e:
        raise Incomplete(f"{folder}/{e}") from e


def verify(folder: Path) -> Manifest:
    """The manifest, after every file was compared with it. Raises Incomplete naming the first file that differs."""
    manifest = read(folder)
    for name, file in manifest.files.items():
        path = folder / name
        if (size := _size(path)) is None:
            raise Incomplete(f"{path} is missing")
        if size != file.size:
            raise Incomplete(f"{path} has {size} bytes instead of {file.size}")
    with ThreadPoolExecutor(_READERS) as readers:  # hashlib lets other threads run
        sums = list(readers.map(_sha256, [folder / name for name in manifest.files]))
    for (name, file), found in zip(manifest.files.items(), sums, strict=True):
        if found != file.sha256:
            raise Incomplete(f"{folder / name} has another checksum than in {NAME}")
    return manifest


def replace_file(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old or the new one, and a crash leaves one of the two."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(partial, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(path: Path) -> int | None:
    """Bytes of a file, None without it; opened, since a network file system may not list yet what others wrote.

    Raises Incomplete where something else stands in its place.
    """
    try:
        with path.open("rb") as f:
            return os.fstat(f.fileno()).st_size
    except FileNotFoundError:
        return None
    except OSError as e:
        raise Incomplete(f"{path} cannot be read: {e.strerror}") from e


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()
    except OSError as e:
        raise Incomplete(f"{path} cannot be read: {e}") from e
