"""A rank's part of a checkpoint:

actor/, critic/   masters and moments (simplerl_trainer.checkpoints.shards)
model/            configuration and tokenizer of the policy, for an export without a group of ranks
ranks.json        steps that AdamW has taken, and the weights' precision
"""

import json
from collections.abc import Mapping
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import hugging_face, manifest, shards
from simplerl_trainer.checkpoints.manifest import File, Incomplete
from simplerl_trainer.checkpoints.room import writing
from simplerl_trainer.policy.trained import AtHand, Trained
from simplerl_trainer.policy.weights import dtype_name, whole_shape

MODEL, STATE = "model", "ranks.json"


def save(
    folder: Path,
    trained: Mapping[str, Trained],
    rank: int,
    ranks: int,
    precision: Precision,
    model_folder: str | None,
    at_hand: AtHand,
) -> dict[str, File]:
    """Writes one rank's part below `folder`, which is there; returns its files once they are on disk.

    `precision` is that of the weights; `model_folder` is given to one rank, which writes what stands once. Raises
    TrainerFailure(CheckpointFailed).
    """
    with writing(f"rank {rank} could not write checkpoint {folder}", folder):
        paths = [
            path
            for name, model in trained.items()
            for path in shards.write(folder / name, model.written(at_hand), rank, ranks)
        ]
        if model_folder is not None:
            (folder / MODEL).mkdir()
            paths += hugging_face.copy_rest(Path(model_folder), folder / MODEL, dtype_name(precision))
            paths.append(folder / STATE)
            document = {
                "precision": precision.value,
                "adamw_steps": {name: int(at_hand(model.steps())) for name, model in trained.items()},
            }
            paths[-1].write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        files = {str(path.relative_to(folder)): manifest.settled(path) for path in paths}
        for parent in {path.parent for path in paths}:
            manifest.sync(parent)
        return files


def load(folder: Path, trained: Mapping[str, Trained]) -> None:
    """Takes over what `save` wrote, on all ranks. Collective. Raises TrainerFailure(CheckpointFailed)."""
    try:
        document = json.loads((folder / STATE).read_text(encoding="utf-8"))
        for name, model in trained.items():
            saved = shards.Saved(folder / name)
            saved.check({n: whole_shape(p) for n, p in model.module.named_parameters()})
            saved.fill(model.held())
        for name, model in trained.items():
            model.publish(document["adamw_steps"][name])
    except (OSError, ValueError, KeyError, TypeError, Incomplete) as e:
        raise TrainerFailure(FailureReason.CHECKPOINT_FAILED, f"checkpoint {folder} cannot be taken up: {e}") from e
