"""A run's checkpoint as a plain Hugging Face folder, without a group of ranks, a GPU or a network."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import hugging_face, shards, store
from simplerl_trainer.checkpoints.manifest import Incomplete
from simplerl_trainer.policy.saved import ACTOR, MODEL, POSITION
from simplerl_trainer.policy.weights import dtype_name, hugging_face_name
from simplerl_trainer.weights.buckets import Bucket, Parameter

CHECKPOINTS = "checkpoints"


class NoCheckpoint(ValueError):
    """A folder that cannot be exported; the message names it and what is missing."""


def export(run: Path, output: Path, step: int | None = None) -> store.Checkpoint:
    """Writes the policy of a run's newest usable checkpoint, or of the one after `step`, to the folder `output`.

    Returns the checkpoint. Raises NoCheckpoint, and OSError where the output cannot be written.
    """
    checkpoint = find(run, step)
    try:
        position = json.loads((checkpoint.folder / POSITION).read_text(encoding="utf-8"))
        dtype = dtype_name(Precision(position["precision"]))
        saved = shards.Saved(checkpoint.folder / ACTOR)
        names = {hugging_face_name(name): name for name in saved.shapes}
        files = hugging_face.files(Parameter(n, dtype, saved.shapes[name]) for n, name in names.items())
        flats = _flats(saved, files, names, getattr(torch, dtype))
        hugging_face.write(output, checkpoint.folder / MODEL, files, flats, {})
    except (ValueError, KeyError, TypeError, Incomplete) as e:
        raise NoCheckpoint(f"{checkpoint.folder} cannot be exported: {e}") from e
    return checkpoint


def find(run: Path, step: int | None) -> store.Checkpoint:
    """The newest usable checkpoint of a run's folder, or the one after `step`. Raises NoCheckpoint."""
    root = run / CHECKPOINTS
    if not root.is_dir():
        raise NoCheckpoint(
            f"{run} has no folder {CHECKPOINTS}: give the folder of a run, as --output of simplerl train"
        )
    if step is not None:
        try:
            return store.at(root, step)
        except Incomplete as e:
            raise NoCheckpoint(str(e)) from e
    newest, skipped = store.newest(root)
    if newest is None:
        reasons = "; ".join(f"{s.name}: {s.why}" for s in skipped) or "it is empty"
        raise NoCheckpoint(f"{root} has no complete checkpoint ({reasons})")
    return newest


def _flats(
    saved: shards.Saved, files: Sequence[Bucket], names: dict[str, str], dtype: torch.dtype
) -> Iterator[torch.Tensor]:
    """The weights of each file in one piece, one file at a time."""
    for file in files:
        yield torch.cat([saved.whole(names[p.name]).to(dtype) for p in file.parameters])
