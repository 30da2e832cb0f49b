"""How well the weights do on questions that they are not trained on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from simplerl_trainer.rollout import rollouts
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.rollouts import Drawing
from simplerl_trainer.rollout.seeds import Stream
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

Scorer = Callable[[Sequence[Sample]], Awaitable[Sequence[Score]]]
RIGHT, NO_ANSWER = "equal", "no_answer"
"""The judge's verdicts that are counted (simplerl_trainer.samples.Score.verdict)."""
CHUNK = 64
"""Samples that are scored together, while others are still drawn."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an evaluation draws its samples."""

    job_seed: int
    temperature: float
    max_new_tokens: int
    samples: int
    """Responses to each question."""


@dataclass(frozen=True, slots=True)
class Record:
    """One judged response."""

    sample: Sample
    score: Score


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluation found."""

    accuracy: float
    """Share of right answers, 0 to 1, over all samples; nan without any."""
    right: int
    truncated: int
    """Responses that were cut at max_new_tokens."""
    no_answer: int
    records: Sequence[Record]
    """In the order of the samples' ids."""


async def evaluate(pool: Pool, prompts: Sequence[Prompt], scorer: Scorer, settings: Settings) -> Result:
    """Draws and scores settings.samples responses to each prompt.

    The seeds are the same at every step, so that results differ by the weights alone. Raises what
    rollouts.generate and the scorer do.
    """
    drawing = Drawing(
        job_seed=settings.job_seed,
        step=0,
        samples_per_prompt=settings.samples,
        temperature=settings.temperature,
        max_new_tokens=settings.max_new_tokens,
        probe=0,
        stream=Stream.EVALUATION,
    )
    scoring: list[asyncio.Task[list[Record]]] = []
    chunk: list[Sample] = []
    try:
        async with aclosing(rollouts.generate(pool, prompts, drawing)) as samples:
            async for sample in samples:
                chunk.append(sample)
                if len(chunk) == CHUNK:
                    scoring.append(asyncio.create_task(_judge(scorer, chunk)))
                    chunk = []
        if chunk:
            scoring.append(asyncio.create_task(_judge(scorer, chunk)))
        judged = await asyncio.gather(*scoring)
    finally:
        for task in scoring:
            task.cancel()
    return summarize([record for records in judged for record in records])


async def _judge(scorer: Scorer, samples: Sequence[Sample]) -> list[Record]:
    scores = await scorer(samples)
    return [Record(sample, score) for sample, score in zip(samples, scores, strict=True)]


def summarize(records: Sequence[Record]) -> Result:
    """Accuracy and counts of judged responses."""
    right = sum(r.score.verdict == RIGHT for r in records)
    return Result(
        accuracy=right / len(records) if records else float("nan"),
        right=right,
        truncated=sum(r.sample.finish is Finish.LENGTH for r in records),
        no_answer=sum(r.score.verdict == NO_ANSWER for r in records),
        records=sorted(records, key=lambda r: r.sample.id),
    )
