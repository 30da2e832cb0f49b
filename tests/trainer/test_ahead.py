"""The order of drawing and training, and what a batch drawn ahead may be."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.ahead import Ahead
from simplerl_trainer.batch import Batch
from simplerl_trainer.data.cursor import Cursor

LOST = TrainerFailure(FailureReason.LOST_ENGINES, "no rollout engine is left")


@dataclass
class Loop:
    """A loop that notes what happens; steps take 2 prompts, and drawing takes a moment."""

    ahead_fails: Exception | None = None
    version: int = 0
    events: list[str] = field(default_factory=list)
    cursor: Cursor = field(default_factory=lambda: Cursor(seed=1, size=100))
    cancelled: bool = False

    async def draw(self, step: int, cursor: Cursor) -> Batch:
        version = self.version
        self.events.append(f"draw {step} from v{version}")
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if self.ahead_fails is not None and step == 2:
            raise self.ahead_fails
        return Batch(step, [], [], cursor.take(2)[1], version)

    async def draw_surely(self, step: int, cursor: Cursor) -> Batch:
        if step > 1:
            self.ahead_fails = None  # engines are back
        return await self.draw(step, cursor)

    async def run(self, steps: int, *, overlapped: bool) -> Sequence[str]:
        async with Ahead(self.draw, self.draw_surely, steps, overlapped=overlapped) as batches:
            for step in range(1, steps + 1):
                batch = await batches.take(step, self.cursor)
                assert batch.step == step
                self.cursor = batch.cursor
                await asyncio.sleep(0)  # training gives the drawing a chance to begin
                self.events.append(f"train {step}")
                await batches.settle(asyncio.Event())
                self.version = step
                self.events.append(f"sync v{step}")
                assert self.cursor.position == 2 * step, "a checkpoint now would draw the next step again"
        return self.events


async def test_without_overlap_each_step_draws_then_trains() -> None:
    """Fault 38 (OpenRLHF#624, #949, #1126): ranks wait in a collective while samples are drawn, until its watchdog ends
    them. Nothing is asked of the ranks before the batch is there."""
    assert await Loop().run(2, overlapped=False) == [
        "draw 1 from v0", "train 1", "sync v1", "draw 2 from v1", "train 2", "sync v2",
    ]  # fmt: skip


async def test_with_one_step_the_next_batch_is_drawn_beside_the_training_from_one_version_before() -> None:
    assert await Loop().run(3, overlapped=True) == [
        "draw 1 from v0",
        "draw 2 from v0", "train 1", "sync v1",
        "draw 3 from v1", "train 2", "sync v2",
        "train 3", "sync v3",
    ]  # fmt: skip


async def test_a_batch_whose_engines_were_lost_is_drawn_again_after_the_sync() -> None:
    assert await Loop(ahead_fails=LOST).run(2, overlapped=True) == [
        "draw 1 from v0", "draw 2 from v0", "train 1", "sync v1", "draw 2 from v1", "train 2", "sync v2",
    ]  # fmt: skip


async def test_another_failure_of_the_drawing_ends_the_loop() -> None:
    full = TrainerFailure(FailureReason.ROLLOUT_OUT_OF_MEMORY, "the engine ran out of memory")
    with pytest.raises(TrainerFailure, match="the engine ran out of memory"):
        await Loop(ahead_fails=full).run(2, overlapped=True)


async def test_what_is_drawn_ahead_ends_with_the_loop() -> None:
    loop = Loop()
    async with Ahead(loop.draw, loop.draw_surely, 5, overlapped=True) as batches:
        await batches.take(1, loop.cursor)
        await asyncio.sleep(0)
        assert loop.events == ["draw 1 from v0", "draw 2 from v0"]
    assert loop.cancelled


@pytest.mark.parametrize(
    ("overlapped", "version", "refused"), [(False, 6, False), (False, 5, True), (True, 5, False), (True, 4, True)]
)
async def test_samples_are_at_most_one_version_old(overlapped: bool, version: int, refused: bool) -> None:
    loop = Loop(version=version)
    async with Ahead(loop.draw, loop.draw_surely, 7, overlapped=overlapped) as batches:
        if not refused:
            assert (await batches.take(7, loop.cursor)).weights_version == version
            return
        with pytest.raises(TrainerFailure, match=f"the samples of step 7 come from weights version {version}"):
            await batches.take(7, loop.cursor)
