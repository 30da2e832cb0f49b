"""The loop, which reads as the algorithm:

    prompts → rollouts.generate → rewards.score → ranks.annotate (log-probs, reference, values, advantages)
            → ranks.update → weights.sync → evaluate / checkpoint / report

A step is one rollout and all its optimizer updates; its samples come from the weights at the step's start.
"""

import asyncio
from collections.abc import Mapping, Sequence

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.clock import Clock
from simplerl_trainer.policy.protocol import Trajectory, Update
from simplerl_trainer.policy.step_plan import make_step_plan
from simplerl_trainer.samples import Prompt, Sample, Score
from simplerl_trainer.session import Session

SCORING_BATCH = 64
"""Samples that are scored together while others are still being drawn."""
MOST_SKIPPED = 3
"""Optimizer steps in a row that may be skipped for gradients that are not finite."""


async def train(session: Session) -> None:
    """Trains from the session's first step to its last."""
    training, step = session.run.spec.training, session.steps_done
    if step == 0:
        await session.evaluate(0)
    skipped = 0
    while step < training.steps:
        step += 1
        clock = Clock()
        with clock.part("rollout"):
            samples, scores = await draw(session, step, session.take_prompts())
        work = {s.id: trajectory(s, scores[s.id]) for s in samples}
        plan = make_step_plan(
            {i: len(t.prompt_ids) + len(t.response_ids) for i, t in work.items()},
            ranks=session.run.plan.ranks,
            train_batch_size=training.train_batch_size,
            max_tokens=training.max_tokens_per_micro_batch,
            seed=training.seed + step,
        )
        await session.turn_to_training()
        with clock.part("annotate"):
            session.reporter.activity("annotate")
            annotation = await session.ranks.annotate(plan, work)
        with clock.part("update"):
            session.reporter.activity("update")
            updates: list[Update] = []
            for batch, epoch in session.ranks.optimizer_steps():
                updates.append(await session.ranks.update(batch, epoch))
                session.reporter.moved()
                skipped = skipped + 1 if updates[-1].skipped else 0
                if skipped >= MOST_SKIPPED:
                    raise TrainerFailure(
                        FailureReason.NON_FINITE,
                        f"the gradients of {skipped} optimizer steps in a row are not finite, the last in step {step}: "
                        "lower training.actor.learningRate or training.critic.learningRate",
                    )
        with clock.part("sync"):
            session.reporter.activity("sync")
            await session.turn_to_rollout(version=step)
        with clock.part("evaluate"):
            if session.evaluation_due(step):
                await session.evaluate(step)
        await session.record_step(step, clock, samples, scores, annotation, updates)
        if session.checkpoint_due(step):
            await session.checkpoint(step)
    await session.export()


async def draw(session: Session, step: int, prompts: Sequence[Prompt]) -> tuple[Sequence[Sample], Mapping[int, Score]]:
    """The step's samples in the order of their ids, and their scores; early ones are scored while others are drawn."""
    session.reporter.activity("rollout")
    samples: list[Sample] = []
    scoring: list[tuple[Sequence[Sample], asyncio.Task[Sequence[Score]]]] = []
    waiting: list[Sample] = []

    def score(batch: list[Sample]) -> None:
        scoring.append((batch, asyncio.ensure_future(session.scorer.score(batch))))

    async for sample in session.draw(step, prompts):
        samples.append(sample)
        waiting.append(sample)
        session.reporter.moved()
        if len(waiting) == SCORING_BATCH:
            score(waiting)
            waiting = []
    if waiting:
        score(waiting)
    scores = {sample.id: value for batch, task in scoring for sample, value in zip(batch, await task, strict=True)}
    return sorted(samples, key=lambda s: s.id), scores


def trajectory(sample: Sample, score: Score) -> Trajectory:
    """What a rank needs of a scored sample."""
    return Trajectory(sample.id, sample.prompt.token_ids, sample.response_ids, score.value, sample.logprobs)
