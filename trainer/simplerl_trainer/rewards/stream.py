"""Scores of samples that are still being drawn."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from simplerl_trainer.samples import Sample, Score

Scorer = Callable[[Sequence[Sample]], Awaitable[Sequence[Score]]]
CHUNK = 64
"""Samples that are scored together, where nobody waits for single ones."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A sample and what it is worth."""

    sample: Sample
    score: Score


async def scored(
    samples: AsyncGenerator[Sample],
    scorer: Scorer,
    moved: Callable[[], None] = lambda: None,
    arrived: Callable[[Sequence[Scored]], None] = lambda chunk: None,
    size: int = CHUNK,
) -> list[Scored]:
    """All samples with their scores, in the order of their ids; early ones are scored while others are drawn.

    `moved` is called for each sample that was drawn and each chunk that was scored, and `arrived` with each chunk of
    `size` samples, in whatever order they finish. What the drawing, the scoring or `arrived` raises ends all at once:
    `samples` is closed, and no scoring goes on.
    """
    chunks: list[asyncio.Task[list[Scored]]] = []

    async def score(chunk: Sequence[Sample]) -> list[Scored]:
        scores = await scorer(chunk)
        moved()
        found = [Scored(sample, value) for sample, value in zip(chunk, scores, strict=True)]
        arrived(found)
        return found

    try:
        async with asyncio.TaskGroup() as group, aclosing(samples):
            chunk: list[Sample] = []
            async for sample in samples:
                moved()
                chunk.append(sample)
                if len(chunk) == size:
                    chunks.append(group.create_task(score(chunk)))
                    chunk = []
            if chunk:
                chunks.append(group.create_task(score(chunk)))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the first is the cause: the group cancels all others
    return sorted((s for task in chunks for s in task.result()), key=lambda s: s.sample.id)
