"""In which order questions are asked: exact, and the same again after a restart."""

import random
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in an endless sequence of epochs, each a fresh permutation of all prompts."""

    seed: int
    size: int
    """Number of prompts; at least 1."""
    epoch: int = 0
    position: int = 0
    """Prompts of the epoch that were taken, less than size."""

    def take(self, count: int) -> tuple[list[int], "Cursor"]:
        """The positions of the next `count` prompts, across epoch ends where need be, and the cursor after them."""
        taken: list[int] = []
        epoch, position = self.epoch, self.position
        while len(taken) < count:
            order = permutation(self.seed, epoch, self.size)
            part = order[position : position + count - len(taken)]
            taken += part
            position += len(part)
            if position == self.size:
                epoch, position = epoch + 1, 0
        return taken, replace(self, epoch=epoch, position=position)

    def document(self) -> dict[str, int]:
        """The cursor as plain data, for a checkpoint."""
        return asdict(self)


def restore(document: dict[str, Any], seed: int, size: int) -> Cursor:
    """The cursor that a checkpoint holds.

    Raises TrainerFailure(INVALID_INPUT) where it belongs to another order: its seed or number of prompts differ.
    """
    cursor = Cursor(**document)
    if (cursor.seed, cursor.size) != (seed, size):
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"the checkpoint stands in {cursor.size} prompts in the order of seed {cursor.seed}, but this run has "
            f"{size} prompts and training.seed {seed}: give the same data and seed",
        )
    return cursor


@lru_cache(maxsize=2)
def permutation(seed: int, epoch: int, size: int) -> tuple[int, ...]:
    """The order of an epoch."""
    # Fisher-Yates on random() alone: Python promises the same numbers in every version only for it, not for shuffle
    draw = random.Random(f"simplerl {seed} {epoch}").random
    order = list(range(size))
    for i in range(size - 1, 0, -1):
        j = int(draw() * (i + 1))
        order[i], order[j] = order[j], order[i]
    return tuple(order)
