"""How well the weights do on questions that they are not trained on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simplerl_trainer.rewards.stream import Scored, Scorer, scored
from simplerl_trainer.rollout import rollouts
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.rollouts import Drawing
from simplerl_trainer.rollout.seeds import Stream
from simplerl_trainer.samples import Finish, Prompt

RIGHT, NO_ANSWER = "equal", "no_answer"
"""The judge's verdicts that are counted (simplerl_trainer.samples.Score.verdict)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an evaluation draws its samples."""

    job_seed: int
    temperature: float
    max_new_tokens: int
    samples: int
    """Responses to each question."""
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluation found."""

    accuracy: float
    """Share of right answers, 0 to 1, over all samples; nan without any."""
    right: int
    truncated: int
    """Responses that were cut at max_new_tokens."""
    no_answer: int
    scored: Sequence[Scored]
    """In the order of the samples' ids."""


async def evaluate(
    pool: Pool, prompts: Sequence[Prompt], scorer: Scorer, settings: Settings, moved: Callable[[], None] = lambda: None
) -> Result:
    """Draws and scores settings.samples responses to each prompt.

    The seeds are the same at every step, so that results differ by the weights alone. `moved` is called where
    something moved. Raises what rollouts.generate and the scorer do.
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
    return summarize(await scored(rollouts.generate(pool, prompts, drawing), scorer, moved))


def summarize(samples: Sequence[Scored]) -> Result:
    """Accuracy and counts of judged responses, which are in the order of their ids."""
    right = sum(s.score.verdict == RIGHT for s in samples)
    return Result(
        accuracy=right / len(samples) if samples else float("nan"),
        right=right,
        truncated=sum(s.sample.finish is Finish.LENGTH for s in samples),
        no_answer=sum(s.score.verdict == NO_ANSWER for s in samples),
        scored=samples,
    )
