"""Another run's checkpoint, from which a run may begin."""

from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints import store
from simplerl_trainer.checkpoints.store import Checkpoint


def checkpoint(folder: str) -> Checkpoint:
    """The newest complete checkpoint of the run in a folder. Raises TrainerFailure(InvalidInput) where there is none,
    with what there is."""
    root = Path(folder) / store.CHECKPOINTS
    newest, skipped = store.newest(root)
    if newest is not None:
        return newest
    if not root.is_dir():
        beside = Path(folder).parent
        there = sorted(p.name for p in beside.iterdir() if p.is_dir())[:10] if beside.is_dir() else []
        found = f"{beside} holds {', '.join(there)}" if there else f"{beside} is empty or not there"
        why = f"there is no folder {root}; {found}"
    else:
        why = "; ".join(s.why for s in skipped) or f"{root} is empty"
    raise TrainerFailure(
        FailureReason.INVALID_INPUT,
        f"checkpoint.resumeFrom is {folder}, which has no checkpoint to go on from: {why}",
    )
