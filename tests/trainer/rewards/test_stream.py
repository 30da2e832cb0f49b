"""Scoring beside drawing: all in order, in chunks, and nothing left running where one of the two fails."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from simplerl_trainer.rewards.stream import CHUNK, Scored, scored
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

PROMPT = Prompt(0, "", "", (1,))


class Drawing:
    """Draws samples in reverse order of their ids; may fail after some."""

    def __init__(self, count: int, fails_after: int | None = None, waits_at: int | None = None) -> None:
        self.count, self.fails_after, self.waits_at = count, fails_after, waits_at
        self.closed = False

    async def samples(self) -> AsyncGenerator[Sample]:
        try:
            for n in range(self.count):
                if n == self.fails_after:
                    raise RuntimeError("the engines are gone")
                if n == self.waits_at:
                    await asyncio.sleep(60)
                await asyncio.sleep(0)
                yield Sample(self.count - 1 - n, PROMPT, (1,), Finish.STOP, 0, None)
        finally:
            self.closed = True


class Judge:
    """Gives each sample its id as score."""

    def __init__(self, fails: bool = False, waits: bool = False) -> None:
        self.fails, self.waits = fails, waits
        self.asked: list[int] = []
        self.cancelled = 0

    async def score(self, samples: Sequence[Sample]) -> Sequence[Score]:
        self.asked.append(len(samples))
        await asyncio.sleep(0)
        if self.fails:
            raise RuntimeError("the judges are gone")
        try:
            await asyncio.sleep(60 if self.waits else 0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return [Score(float(s.id), "equal") for s in samples]


async def test_samples_come_in_the_order_of_their_ids_each_with_its_score() -> None:
    judge, moves = Judge(), 0

    def moved() -> None:
        nonlocal moves
        moves += 1

    found = await scored(Drawing(150).samples(), judge.score, moved)
    assert [s.sample.id for s in found] == list(range(150))
    assert all(s.score.value == s.sample.id for s in found)
    assert judge.asked == [CHUNK, CHUNK, 150 - 2 * CHUNK]
    assert moves == 150 + 3


async def test_nothing_drawn_is_nothing_scored() -> None:
    judge = Judge()
    assert await scored(Drawing(0).samples(), judge.score) == []
    assert judge.asked == []


async def test_chunks_are_scored_while_others_are_drawn() -> None:
    drawing, judge = Drawing(CHUNK + 1, waits_at=CHUNK), Judge()
    task: asyncio.Task[list[Scored]] = asyncio.ensure_future(scored(drawing.samples(), judge.score))
    await asyncio.sleep(0.1)
    assert judge.asked == [CHUNK]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert drawing.closed


async def test_a_drawing_that_fails_ends_the_scoring() -> None:
    judge = Judge(waits=True)
    with pytest.raises(RuntimeError, match="the engines are gone"):
        await asyncio.wait_for(scored(Drawing(100, fails_after=90).samples(), judge.score), 5)
    assert (judge.asked, judge.cancelled) == ([CHUNK], 1)


async def test_a_scoring_that_fails_ends_the_drawing_at_once() -> None:
    drawing = Drawing(100, waits_at=80)
    with pytest.raises(RuntimeError, match="the judges are gone"):
        await asyncio.wait_for(scored(drawing.samples(), Judge(fails=True).score), 5)
    assert drawing.closed
