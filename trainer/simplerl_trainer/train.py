"""The loop, which reads as the algorithm:

    prompts → rollouts.generate → rewards.score → ranks.annotate (log-probs, reference, values, advantages)
            → ranks.update → weights.sync → evaluate / checkpoint / report

A step is one rollout and all its optimizer updates. Its samples come from the weights at the step's start, or with
`rollout.overlap: OneStep` from those at the start of the step before (simplerl_trainer.ahead).
"""

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.clock import Clock
from simplerl_trainer.policy.protocol import Annotation, Update
from simplerl_trainer.policy.step_plan import make_step_plan
from simplerl_trainer.session import Session

MOST_SKIPPED = 3
"""Optimizer steps in a row that may be skipped for gradients that are not finite."""


async def train(session: Session) -> None:
    """Trains from the session's first step to its last."""
    training, skipped = session.run.spec.training, 0
    if session.evaluation_missing():
        await session.evaluate(session.steps_done)
    async with session.batches() as batches:
        for step in range(session.steps_done + 1, training.steps + 1):
            clock = Clock()
            with clock.part("rollout"):
                batch = await session.take(batches, step)
            work = await session.trajectories(batch)
            annotation: Annotation | None = None
            updates: list[Update] = []
            if work:
                plan = make_step_plan(
                    {i: len(t.prompt_ids) + len(t.response_ids) for i, t in work.items()},
                    ranks=session.run.plan.ranks,
                    train_batch_size=training.train_batch_size,
                    max_tokens=session.run.plan.max_tokens_per_micro_batch,
                    seed=training.seed + step,
                    micro_batches=session.run.plan.gradient_accumulation_steps,
                )
                await session.turns.to_training()
                with clock.part("annotate"):
                    session.reporter.activity("annotate")
                    annotation = await session.ranks.annotate(plan, work, step, session.kl_coefficient)
                    session.adapt_kl(annotation)
                with clock.part("update"):
                    session.reporter.activity("update")
                    for number, epoch in session.ranks.optimizer_steps(len(plan)):
                        updates.append(await session.ranks.update(number, epoch))
                        session.reporter.moved()
                        skipped = skipped + 1 if updates[-1].skipped else 0
                        check_finite(skipped, step)
            with clock.part("rollout"):
                await batches.settle(session.drain)
            session.sizing.trained(session.fleet, clock)
            with clock.part("sync"):
                session.reporter.activity("sync")
                await session.turns.to_rollout(version=step)
            with clock.part("evaluate"):
                if session.evaluation_due(step):
                    await session.evaluate(step)
            await session.record_step(clock, batch, annotation, updates)
            if session.checkpoint_due(step):
                await session.checkpoint(step)
    await session.export()


def check_finite(skipped: int, step: int) -> None:
    """Raises TrainerFailure(NonFinite) where too many optimizer steps in a row were skipped."""
    if skipped >= MOST_SKIPPED:
        raise TrainerFailure(
            FailureReason.NON_FINITE,
            f"the gradients of {skipped} optimizer steps in a row are not finite, the last in step {step}: "
            "lower training.actor.learningRate or training.critic.learningRate",
        )
