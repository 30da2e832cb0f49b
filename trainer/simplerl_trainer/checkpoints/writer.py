"""The writing of a checkpoint: the ranks write their parts, the driver makes them one unit."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.checkpoints import store
from simplerl_trainer.checkpoints.fence import Fence
from simplerl_trainer.checkpoints.manifest import File
from simplerl_trainer.checkpoints.room import writing
from simplerl_trainer.checkpoints.store import Checkpoint


class Saver(Protocol):
    """Ranks that write their state."""

    async def save(self, folder: str) -> Mapping[str, File]:
        """Writes it into a folder; returns what was written by name."""


async def write(
    ranks: Saver, root: Path, step: int, fence: Fence, state: Mapping[str, Any], *, attempt: int, keep: int
) -> Checkpoint:
    """Saves the state after a step below `root`; `state` is the driver's part. Older checkpoints but `keep` go once it
    is complete; where the ranks cannot write, nothing of it is left."""
    await asyncio.to_thread(fence.check)
    folder = await asyncio.to_thread(store.begin, root, step, attempt)
    try:
        files = await ranks.save(str(folder))
        await asyncio.to_thread(fence.check)
        saved = await asyncio.to_thread(store.finish, folder, step, files, state)
    except TrainerFailure:
        await asyncio.to_thread(store.abandon, folder)
        raise
    with writing(f"old checkpoints below {root} cannot be removed", root):
        await asyncio.to_thread(store.prune, root, keep, step)
    return saved
