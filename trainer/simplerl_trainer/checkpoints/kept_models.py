"""The models that a run leaves in its folder, each a plain Hugging Face folder: the trained one and the best one."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from simplerl_trainer.checkpoints import best, swap
from simplerl_trainer.checkpoints.fence import Fence
from simplerl_trainer.checkpoints.room import writing

MODEL = "model"


class Exporter(Protocol):
    """Ranks that write the policy which they hold."""

    async def export(self, folder: str, notes: Mapping[str, str]) -> None:
        """Writes it as a Hugging Face folder, with notes by the names of their files."""


async def keep_trained(ranks: Exporter, output: Path, fence: Fence) -> Path:
    """Leaves the policy as the trained model; returns its folder."""
    return await _keep(ranks, output / MODEL, fence, {})


def is_best(output: Path, new: best.Best) -> bool:
    """Whether an evaluation beats that of the best model so far."""
    folder = output / best.FOLDER
    with writing(f"the best model {folder} cannot be compared", output):
        swap.repair(folder)
        return best.beats(new, best.read(folder))


async def keep_best(ranks: Exporter, output: Path, fence: Fence, new: best.Best) -> Path:
    """Leaves the policy as the best model, with what it reached; returns its folder."""
    return await _keep(ranks, output / best.FOLDER, fence, {best.FILE: new.to_json()})


async def _keep(ranks: Exporter, folder: Path, fence: Fence, notes: Mapping[str, str]) -> Path:
    await asyncio.to_thread(fence.check)
    await ranks.export(str(folder), notes)
    return folder
