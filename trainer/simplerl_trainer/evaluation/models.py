"""The models of an evaluation: plain folders, and checkpoints of ours."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints import export, manifest, store

_BLOCK, _BLOCKS = 2**16, 64
"""Bytes of a block, and blocks of each file of weights, that go into a fingerprint: gigabytes would take minutes."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model to be evaluated."""

    label: str
    """Names it in files and tables."""
    folder: Path
    """Its Hugging Face folder, or the run's folder of a checkpoint."""
    step: int | None = None
    """The step of a checkpoint; None for a plain folder."""

    def fingerprint(self) -> str:
        """Of its weights, or of its checkpoint's manifest."""
        found = hashlib.sha256()
        if self.step is not None:
            file = store.folder_of(self.folder / store.CHECKPOINTS, self.step) / manifest.NAME
            found.update(file.read_bytes())
        else:
            for file in sorted(f for f in self.folder.iterdir() if f.suffix in (".json", ".safetensors", ".jinja")):
                found.update(f"{file.name} {file.stat().st_size}\n".encode())
                found.update(_sampled(file))
        return f"sha256:{found.hexdigest()}"


def find(paths: Sequence[Path]) -> list[Model]:
    """The models at each path: a Hugging Face folder, a checkpoint, or every complete checkpoint of a run, oldest
    first.

    Raises TrainerFailure(INVALID_INPUT) naming a path that holds none.
    """
    found = [model for path in paths for model in _at(path)]
    labels = [m.label for m in found]
    if doubled := next((label for label in labels if labels.count(label) > 1), None):
        raise _invalid(f"--model-path has two models of the name {doubled}: evaluate them with an --output each")
    return found


@contextmanager
def folder(model: Model, scratch: Path) -> Iterator[Path]:
    """The model as a Hugging Face folder; that of a checkpoint is written below `scratch` and removed afterwards.

    Raises TrainerFailure(INVALID_INPUT) where the checkpoint is damaged.
    """
    if model.step is None:
        yield model.folder
        return
    written = scratch / f".{model.label}"
    try:
        _export(model.folder, model.step, written)
        yield written
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _at(path: Path) -> list[Model]:
    whole = path.resolve()
    if not whole.is_dir():
        raise _invalid(
            f"--model-path is {path}, which is no folder: give a Hugging Face folder, a checkpoint or a run's folder"
        )
    if (whole / manifest.NAME).exists():
        run = whole.parents[1]
        try:
            step = manifest.read(whole).step
        except manifest.Incomplete as e:
            raise _invalid(f"--model-path is {path}, a checkpoint that cannot be used ({e}): give another one") from e
        return [Model(f"{run.name}-{whole.name}", run, step)]
    if (whole / store.CHECKPOINTS).is_dir():
        if not (checkpoints := store.complete(whole / store.CHECKPOINTS)):
            raise _invalid(f"--model-path is {path}, a run's folder without a complete checkpoint: train it first")
        return [Model(f"{whole.name}-{c.folder.name}", whole, c.step) for c in checkpoints]
    if (whole / "config.json").exists():
        return [Model(whole.name, whole)]
    raise _invalid(
        f"--model-path is {path}, which has neither a config.json, nor a {manifest.NAME}, nor a folder "
        f"{store.CHECKPOINTS}: give a Hugging Face folder, a checkpoint or a run's folder"
    )


def _export(run: Path, step: int, folder: Path) -> None:
    try:
        export.export(run, folder, step)
    except export.NoCheckpoint as e:
        raise _invalid(str(e)) from e
    except OSError as e:
        raise _invalid(f"the checkpoint of {run} after step {step} cannot be exported to {folder}: {e}") from e


def _sampled(file: Path) -> bytes:
    size = file.stat().st_size
    found = hashlib.sha256()
    with file.open("rb") as f:
        for block in range(_BLOCKS):
            f.seek(max(0, size - _BLOCK) * block // (_BLOCKS - 1))
            found.update(f.read(_BLOCK))
    return found.digest()


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
