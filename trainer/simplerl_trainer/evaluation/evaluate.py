"""How well the weights do on questions that they are not trained on."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from simplerl_api.spec.evaluation import Evaluation
from simplerl_api.spec.job import Spec
from simplerl_trainer.evaluation import metrics
from simplerl_trainer.evaluation.metrics import Answer, Figures
from simplerl_trainer.evaluation.records import UNASKED, level, subject
from simplerl_trainer.rewards.outcome import Verdict
from simplerl_trainer.rewards.stream import CHUNK, Scored, Scorer, scored
from simplerl_trainer.rollout import rollouts
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.rollouts import Drawing
from simplerl_trainer.rollout.seeds import Stream
from simplerl_trainer.samples import Prompt


@dataclass(frozen=True, slots=True)
class Settings:
    """How an evaluation draws its samples."""

    job_seed: int
    temperature: float
    max_new_tokens: int
    samples: int
    """Responses to each question."""
    top_p: float = 1.0


def settings(spec: Spec, of: Evaluation) -> Settings:
    """What a job's spec says of its evaluations, which are `of` it."""
    return Settings(
        job_seed=spec.training.seed,
        temperature=of.temperature,
        top_p=of.top_p,
        max_new_tokens=of.max_new_tokens or spec.rollout.sampling.max_new_tokens,
        samples=of.samples,
    )


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluation found."""

    figures: Figures
    scored: Sequence[Scored]
    """In the order of the samples' ids."""


async def evaluate(
    pool: Pool,
    prompts: Sequence[Prompt],
    scorer: Scorer,
    settings: Settings,
    moved: Callable[[], None] = lambda: None,
    unasked: Sequence[Prompt] = (),
) -> Result:
    """Draws and scores settings.samples responses to each prompt; those of `unasked` count as failed.

    `moved` is called where something moved. Raises what rollouts.generate and the scorer do.
    """
    found = await draw(pool, prompts, scorer, settings, moved=moved)
    answers = [answer(s, settings.samples) for s in found]
    for question, prompt in enumerate(unasked, start=len(prompts)):
        failed = Answer(question, Verdict.FAILED, "", 0, UNASKED, level(prompt), subject(prompt))
        answers += [failed] * settings.samples
    return Result(metrics.figures(answers, settings.job_seed), found)


async def draw(
    pool: Pool,
    prompts: Sequence[Prompt],
    scorer: Scorer,
    settings: Settings,
    *,
    skip: Set[int] = frozenset(),
    moved: Callable[[], None] = lambda: None,
    arrived: Callable[[Sequence[Scored]], None] = lambda chunk: None,
    size: int = CHUNK,
) -> list[Scored]:
    """The samples but those whose ids are in `skip`; `arrived` is called with each `size` of them as they are judged.

    A sample's random numbers are fixed by the seed and its place in the data set: results of two models differ by the
    models alone, and what is drawn in several sittings is what one sitting would have drawn.
    """
    drawing = Drawing(
        job_seed=settings.job_seed,
        step=0,
        samples_per_prompt=settings.samples,
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_new_tokens=settings.max_new_tokens,
        probe=0,
        stream=Stream.EVALUATION,
    )
    return await scored(rollouts.generate(pool, prompts, drawing, skip), scorer, moved, arrived, size)


def answer(scored: Scored, samples: int) -> Answer:
    """What counts of a sample."""
    sample, score = scored.sample, scored.score
    return Answer(
        question=sample.id // samples,
        verdict=str(score.verdict),
        extracted=score.extracted,
        tokens=len(sample.response_ids),
        finish=sample.finish.value,
        level=level(sample.prompt),
        subject=subject(sample.prompt),
    )
