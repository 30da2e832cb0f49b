"""The manifest of a checkpoint: its files with sizes and checksums, written last. A checkpoint is complete with it."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

NAME = "manifest.json"
FORMAT = 1


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
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Incomplete(f"{NAME} cannot be read: {e!r}") from e


def complete(folder: Path, step: int, names: Iterable[str]) -> Manifest:
    """Makes the checkpoint in `folder` complete: every file on disk for good, then the manifest, at once.

    `names` are all its files, relative to `folder`. Raises Incomplete naming a file that is not there, is not named, or
    lies outside of the folder.
    """
    named = set(names)
    for name in named:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise Incomplete(f"{name} does not lie in {folder}")
    present = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {NAME}
    if missing := named - present:
        raise Incomplete(f"{folder / min(missing)} was not written")
    if strange := present - named:
        raise Incomplete(f"{folder / min(strange)} belongs to no part of the checkpoint")
    manifest = Manifest(step, {name: _settled(folder / name) for name in named})
    replace_file(folder / NAME, manifest.to_json())
    _sync(folder.parent)
    return manifest


def read(folder: Path) -> Manifest:
    """The manifest of a checkpoint. Raises Incomplete where there is none."""
    try:
        text = (folder / NAME).read_text(encoding="utf-8")
    except FileNotFoundError as e:
        raise Incomplete(f"{folder} has no {NAME}: its writer did not finish") from e
    except (OSError, UnicodeDecodeError) as e:
        raise Incomplete(f"{folder / NAME} cannot be read: {e}") from e
    return from_json(text)


def verify(folder: Path) -> Manifest:
    """The manifest, after every file was compared with it. Raises Incomplete naming the first file that differs."""
    manifest = read(folder)
    for name, file in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise Incomplete(f"{path} is missing")
        if (size := path.stat().st_size) != file.size:
            raise Incomplete(f"{path} has {size} bytes instead of {file.size}")
        if _sha256(path) != file.sha256:
            raise Incomplete(f"{path} has another checksum than in {NAME}")
    return manifest


def replace_file(path: Path, text: str) -> None:
    """Writes a file so that a reader sees the old or the new one, and a crash leaves one of the two."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(partial, path)
    _sync(path.parent)


def _settled(path: Path) -> File:
    _sync(path)
    return File(path.stat().st_size, _sha256(path))


def _sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
