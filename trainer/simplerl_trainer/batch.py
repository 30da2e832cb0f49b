"""A batch: what one step trains on, drawn and scored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from simplerl_api.spec.algorithm import OVERLONG, Algorithm
from simplerl_api.spec.job import Spec
from simplerl_api.spec.rewards import Reward
from simplerl_api.spec.rollout import Overlap
from simplerl_trainer.algorithms.overlong import overlong_penalty
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.policy.protocol import Trajectory
from simplerl_trainer.rewards.score import with_models
from simplerl_trainer.rewards.stream import Scored, Scorer, scored
from simplerl_trainer.rollout import rollouts
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.rollouts import EVERY, PROBE, Drawing
from simplerl_trainer.samples import Finish, Prompt


@dataclass(frozen=True, slots=True)
class Batch:
    """The samples of one step."""

    step: int
    drawn: Sequence[Scored]
    """All samples, in the order of their ids."""
    trained: Sequence[Scored]
    """Those that the step trains on, in the order of their ids; with dynamic sampling there may be fewer, or none."""
    cursor: Cursor
    """The place in the prompts after this batch."""
    weights_version: int
    """Version of the weights that drew all of it."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Metrics of how it was drawn."""

    def trajectories(self, samples_per_prompt: int) -> Mapping[int, Trajectory]:
        """What the ranks need of the samples that are trained on, by id."""
        return {
            s.sample.id: Trajectory(
                s.sample.id,
                s.sample.prompt.token_ids,
                s.sample.response_ids,
                s.score.value,
                s.sample.logprobs,
                group=s.sample.id // samples_per_prompt,
            )
            for s in self.trained
        }

    def with_models(self, rewards: Sequence[Reward], judged: Mapping[int, Sequence[float]]) -> "Batch":
        """The batch with what the reward models among `rewards` say of its samples; the same where they say nothing."""
        if not judged:
            return self

        def scored(samples: Sequence[Scored]) -> list[Scored]:
            return [replace(s, score=with_models(s.score, rewards, judged[s.sample.id])) for s in samples]

        return replace(self, drawn=scored(self.drawn), trained=scored(self.trained))


@dataclass(frozen=True, slots=True)
class Drawer:
    """Draws a run's batches."""

    spec: Spec
    pool: Pool
    prompts: Sequence[Prompt]
    """All training prompts."""
    scorer: Scorer
    moved: Callable[[], None]
    """Called where something moved."""

    async def draw(self, step: int, cursor: Cursor, weights_version: int) -> Batch:
        """The batch of a step from the prompts after `cursor`; all of it must come from these weights.

        With dynamic sampling (DAPO, https://arxiv.org/abs/2503.14476, section 3.2) the groups whose samples all have
        one score are replaced by groups of fresh prompts, round after round, until the batch is full or the rounds are
        spent; the step then trains on the groups that there are. Raises what rollouts.generate and the scorer do.
        """
        rollout, algorithm = self.spec.rollout, self.spec.algorithm
        dynamic = algorithm.dynamic_sampling
        rounds, missing, drawn, trained = 0, rollout.prompts_per_step, list[Scored](), list[Scored]()
        while missing and rounds <= (dynamic.max_rounds if dynamic else 0):
            positions, cursor = cursor.take(missing)
            prompts = [self.prompts[i] for i in positions]
            drawing = self._drawing(step, weights_version, first_prompt=len(drawn) // rollout.samples_per_prompt)
            judged = await scored(rollouts.generate(self.pool, prompts, drawing), self.scorer, self.moved)
            new = shaped(judged, algorithm, rollout.sampling.max_new_tokens)
            kept = unmasked(new, algorithm)
            kept = varied(kept, rollout.samples_per_prompt) if dynamic else kept
            drawn, trained, rounds = drawn + new, trained + kept, rounds + 1
            missing -= groups(kept, rollout.samples_per_prompt)
        figures = {"staleness": float(step - 1 - weights_version)} if self._overlapped else {}
        if dynamic:
            made, used = (float(groups(s, rollout.samples_per_prompt)) for s in (drawn, trained))
            figures |= {"sampling_rounds": float(rounds), "dropped_groups": made - used, "trained_groups": used}
        return Batch(step, drawn, trained, cursor, weights_version, figures)

    def _drawing(self, step: int, weights_version: int, first_prompt: int) -> Drawing:
        rollout = self.spec.rollout
        return Drawing(
            job_seed=self.spec.training.seed,
            step=step,
            samples_per_prompt=rollout.samples_per_prompt,
            temperature=rollout.sampling.temperature,
            max_new_tokens=rollout.sampling.max_new_tokens,
            first_prompt=first_prompt,
            # decoupled PPO weighs every token; else a few samples show whether engines and ranks agree
            probe=EVERY if self._overlapped else PROBE,
            weights_version=weights_version,
        )

    @property
    def _overlapped(self) -> bool:
        return self.spec.rollout.overlap is Overlap.ONE_STEP


def shaped(samples: Sequence[Scored], algorithm: Algorithm, max_new_tokens: int) -> list[Scored]:
    """The samples with algorithm.overlong's penalty as a part of their scores, where it is set."""
    if (overlong := algorithm.overlong) is None:
        return list(samples)
    found = []
    for s in samples:
        penalty = overlong_penalty(len(s.sample.response_ids), max_new_tokens, overlong.buffer_tokens, overlong.penalty)
        parts = {**s.score.parts, OVERLONG: penalty}
        found.append(Scored(s.sample, replace(s.score, value=s.score.value + penalty, parts=parts)))
    return found


def unmasked(samples: Sequence[Scored], algorithm: Algorithm) -> list[Scored]:
    """The samples that are trained on: with algorithm.maskTruncated those that were not cut at maxNewTokens.

    The others reach no rank: they are in no pack, denominator or group.
    """
    return [s for s in samples if not (algorithm.mask_truncated and s.sample.finish is Finish.LENGTH)]


def groups(samples: Sequence[Scored], samples_per_prompt: int) -> int:
    """The number of prompts that these samples answer."""
    return len({s.sample.id // samples_per_prompt for s in samples})


def varied(samples: Sequence[Scored], samples_per_prompt: int) -> list[Scored]:
    """The samples of the groups in which not all have the same score: the others' group advantage is 0."""
    of_prompt: dict[int, list[Scored]] = {}
    for s in samples:
        of_prompt.setdefault(s.sample.id // samples_per_prompt, []).append(s)
    return [s for group in of_prompt.values() if len({s.score.value for s in group}) > 1 for s in group]
