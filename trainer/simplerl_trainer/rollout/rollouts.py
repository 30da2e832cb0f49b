"""Samples of prompts, as they finish: what the loop and the evaluation iterate over."""

import sys
from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import aclosing
from dataclasses import dataclass

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import Request
from simplerl_trainer.rollout.seeds import Stream, seed
from simplerl_trainer.samples import Prompt, Sample

PROBE = 16
"""Samples of a step that carry the engine's log-probabilities, to compare with the ranks' (the mismatch metric)."""
EVERY = sys.maxsize
"""As `probe`: every sample carries them."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How samples are drawn from prompts."""

    job_seed: int
    step: int
    samples_per_prompt: int
    temperature: float
    max_new_tokens: int
    first_prompt: int = 0
    """Position in the step of the first prompt: fixes the ids and the random numbers of its samples."""
    probe: int = PROBE
    """The samples with an id below it carry log-probabilities."""
    stream: Stream = Stream.ROLLOUT
    top_p: float = 1.0
    weights_version: int | None = None
    """Version that the samples must come from; None takes any."""


async def generate(
    pool: Pool, prompts: Sequence[Prompt], drawing: Drawing, skip: Set[int] = frozenset()
) -> AsyncGenerator[Sample]:
    """samples_per_prompt samples of each prompt but those whose ids are in `skip`, as they finish; close the iterator
    to abandon the rest.

    Raises what Pool.generate does, and TrainerFailure(InternalError) where a sample comes from other weights than
    asked for.
    """
    wanted = [r for r in requests(prompts, drawing) if r.id not in skip]
    async with aclosing(pool.generate(wanted)) as responses:
        async for f in responses:
            if drawing.weights_version not in (None, f.weights_version):
                raise TrainerFailure(
                    FailureReason.INTERNAL,
                    f"sample {f.id} of step {drawing.step} comes from weights version {f.weights_version}, not "
                    f"{drawing.weights_version}",
                )
            prompt = prompts[f.id // drawing.samples_per_prompt - drawing.first_prompt]
            yield Sample(f.id, prompt, f.token_ids, f.finish, f.weights_version, f.logprobs)


def requests(prompts: Sequence[Prompt], drawing: Drawing) -> Sequence[Request]:
    """The requests, in order of the samples' ids: prompt by prompt, so that engines share prefixes."""
    return [
        Request(
            id=p * drawing.samples_per_prompt + s,
            prompt_ids=prompt.token_ids,
            seed=seed(drawing.job_seed, drawing.step, p, s, drawing.stream),
            temperature=drawing.temperature,
            max_new_tokens=drawing.max_new_tokens,
            logprobs=p * drawing.samples_per_prompt + s < drawing.probe,
            top_p=drawing.top_p,
        )
        for p, prompt in enumerate(prompts, start=drawing.first_prompt)
        for s in range(drawing.samples_per_prompt)
    ]
