"""In which order batches are drawn and trained.

    None:     draw 1, train 1, sync 1, draw 2, train 2, sync 2, draw 3, ...
    OneStep:  draw 1, train 1 beside draw 2, sync 1, train 2 beside draw 3, sync 2, ...

With OneStep the batch of step k+1 is drawn from the weights that step k begins with, while step k trains: each sample
is trained exactly one version after the one that drew it, but for those of an attempt's first step.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import drain as draining
from simplerl_trainer.batch import Batch
from simplerl_trainer.data.cursor import Cursor

STALENESS = 1
"""Versions by which samples may be older than the weights that they train, with OneStep."""

Draw = Callable[[int, Cursor], Awaitable[Batch]]
"""Draws the batch of a step from the prompts after a cursor, from the weights that the engines have."""


class Ahead:
    """Gives each step its batch; the one that is under way ends with the context."""

    def __init__(self, draw: Draw, draw_surely: Draw, last_step: int, *, overlapped: bool) -> None:
        """`draw` ends with LostEngines where all engines are lost; `draw_surely` waits for one to come back, which
        needs ranks that do nothing else. No batch is drawn for a step after `last_step`."""
        self._draw, self._draw_surely = draw, draw_surely
        self._last_step, self._overlapped = last_step, overlapped
        self._next: asyncio.Task[Batch] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)

    async def take(self, step: int, cursor: Cursor) -> Batch:
        """The batch of a step, which takes its prompts after `cursor`; the next one is begun with OneStep.

        Raises what drawing does, and TrainerFailure(InternalError) for samples that are too old.
        """
        batch = await self._drawn() or await self._draw_surely(step, cursor)
        age = step - 1 - batch.weights_version
        if not 0 <= age <= (STALENESS if self._overlapped else 0):
            raise TrainerFailure(
                FailureReason.INTERNAL,
                f"the samples of step {step} come from weights version {batch.weights_version}, {age} before those "
                "that they would train",
            )
        if self._overlapped and step < self._last_step:
            self._next = asyncio.ensure_future(self._draw(step + 1, batch.cursor))
        return batch

    async def settle(self, abandon: asyncio.Event) -> None:
        """Waits until the engines draw nothing more, so that they can load weights; where `abandon` is set, what they
        draw is not wanted any more."""
        task = self._next
        if task is None:
            return
        try:
            await draining.unless(abandon, lambda: asyncio.wait([task]))
        except draining.Drained:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _drawn(self) -> Batch | None:
        """The batch that was drawn ahead; None where there is none, or where its engines were lost."""
        task, self._next = self._next, None
        if task is None:
            return None
        try:
            return await task
        except TrainerFailure as failure:
            if failure.reason is not FailureReason.LOST_ENGINES:
                raise
            return None
