"""A run's checkpoint as a plain Hugging Face folder, without a group of ranks, a GPU or a network."""

import json
from pathlib import Path

from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import shards, store
from simplerl_trainer.checkpoints.manifest import Incomplete
from simplerl_trainer.policy import weights
from simplerl_trainer.policy.saved import MODEL, STATE


class NoCheckpoint(ValueError):
    """A folder that cannot be exported; the message names it and what is missing."""


def export(run: Path, output: Path, step: int | None = None) -> store.Checkpoint:
    """Writes the policy of a run's newest usable checkpoint, or of the one after `step`, to the folder `output`.

    Returns the checkpoint. Raises NoCheckpoint, and OSError where a file cannot be read or written.
    """
    checkpoint = find(run, step)
    try:
        state = json.loads((checkpoint.folder / STATE).read_text(encoding="utf-8"))
        masters = shards.Saved(checkpoint.folder / "actor")
        weights.assemble(masters, Precision(state["precision"]), checkpoint.folder / MODEL, output, {})
    except (ValueError, KeyError, TypeError, RecursionError, Incomplete) as e:
        raise NoCheckpoint(f"{checkpoint.folder} cannot be exported: {e}") from e
    return checkpoint


def find(run: Path, step: int | None) -> store.Checkpoint:
    """The newest usable checkpoint of a run's folder, or the one after `step`. Raises NoCheckpoint."""
    root = run / store.CHECKPOINTS
    if not root.is_dir():
        raise NoCheckpoint(
            f"{run} has no folder {store.CHECKPOINTS}: give a run's folder, as --output of simplerl train"
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
