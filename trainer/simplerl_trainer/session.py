"""A session: everything that the loop uses, opened at the start of an attempt and closed at its end."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from simplerl_api.progress import EvaluationProgress
from simplerl_api.run import Run
from simplerl_api.spec.rollout import Overlap
from simplerl_trainer import drain as draining
from simplerl_trainer import metrics
from simplerl_trainer.ahead import Ahead
from simplerl_trainer.algorithms.adaptive_kl import adapted
from simplerl_trainer.batch import Batch, Drawer
from simplerl_trainer.checkpoints import best, kept_models, other_run, store, writer
from simplerl_trainer.checkpoints.fence import Fence
from simplerl_trainer.checkpoints.room import writing
from simplerl_trainer.clock import Clock
from simplerl_trainer.data import cursor
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.evaluation import evaluate as evaluation
from simplerl_trainer.fleet import Fleet
from simplerl_trainer.inputs import Inputs
from simplerl_trainer.policy.protocol import Annotation, Trajectory, Update
from simplerl_trainer.progress import files
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter, StepPoint
from simplerl_trainer.progress.trackers import Trackers, make_trackers
from simplerl_trainer.rewards import texts as reward_texts
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.rewards.texts import JudgeReader
from simplerl_trainer.sizing import Sizing
from simplerl_trainer.turns import Turns


@dataclass
class Session:
    """One attempt's means."""

    run: Run
    inputs: Inputs
    fleet: Fleet
    scorer: Scorer
    cursor: Cursor
    reporter: Reporter
    log: Log
    fence: Fence
    readers: Sequence[JudgeReader] = ()
    """How the reward models read, in their order."""
    drain: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the run is asked to drain: nothing more is drawn, and training ends after the step at work."""
    steps_done: int = 0
    """Steps that were done when the attempt began."""
    finished: int = 0
    """The last finished step."""
    saved: int = 0
    """The step of the newest checkpoint."""
    abandoned: bool = False
    """Whether an evaluation was abandoned since the run drains."""
    kl_coefficient: float = field(init=False)
    """Weight of the KL term in the next step."""
    sizing: Sizing = field(init=False)
    """How many engines are wanted, where they come and go."""
    turns: Turns = field(init=False)
    """Whether ranks or engines have the GPUs, and which weights the engines have."""
    trackers: Trackers = field(init=False)
    """Made by `resume`, since a resumed run goes on in the trackers' own runs."""

    def __post_init__(self) -> None:
        self.kl_coefficient = self.run.spec.algorithm.kl.coefficient
        self.turns = Turns(self.fleet, self.reporter, self.drain)
        self.sizing = Sizing(self.run, self.log)

    @property
    def ranks(self) -> Any:
        """The training ranks."""
        return self.fleet.ranks

    @property
    def output(self) -> Path:
        """The run's folder."""
        return Path(self.run.output)

    def batches(self) -> Ahead:
        """The steps' batches, in their order."""
        spec = self.run.spec
        overlapped = spec.rollout.overlap is Overlap.ONE_STEP
        return Ahead(self.draw, self.draw_surely, spec.training.steps, overlapped=overlapped)

    async def take(self, batches: Ahead, step: int) -> Batch:
        """The batch of a step; the cursor then stands after it."""
        self.reporter.activity("rollout")
        batch = await draining.unless(self.drain, lambda: batches.take(step, self.cursor))
        self.cursor = batch.cursor
        if not batch.trained:
            self.log.warning(
                "step without an update", step=step, **batch.figures,
                why="each sample was cut at maxNewTokens (maskTruncated), or has the score of its whole group",
            )  # fmt: skip
        return batch

    async def draw(self, step: int, start: Cursor) -> Batch:
        """Draws and scores the batch of a step from the weights that the engines have."""
        drawer = Drawer(self.run.spec, self.fleet.pool, self.inputs.prompts, self.scorer.score, self.reporter.moved)
        began = time.monotonic()
        batch = await drawer.draw(step, start, self.turns.version)
        self.sizing.drew(time.monotonic() - began)
        return batch

    async def draw_surely(self, step: int, start: Cursor) -> Batch:
        """The same; waits for an engine to come back where all are lost, while the ranks do nothing else."""
        return await self.turns.with_engines(lambda: self.draw(step, start))

    def adapt_kl(self, annotation: Annotation) -> None:
        """Moves the KL term's weight for the next step, where algorithm.kl.adaptive says so."""
        if (adaptive := self.run.spec.algorithm.kl.adaptive) is not None:
            self.kl_coefficient = adapted(
                self.kl_coefficient,
                annotation.metrics["kl"],
                adaptive.target,
                adaptive.horizon,
                samples=len(annotation.advantages),
            )

    def evaluation_missing(self) -> bool:
        """Whether the weights that the attempt begins with are still to be evaluated: those before training, or those
        of a run that drained in the middle of it."""
        spec = self.run.spec.evaluation
        if spec is None or (self.steps_done > 0 and not self.evaluation_due(self.steps_done)):
            return False
        done = {e.dataset for e in self.reporter.document().evaluations if e.last.step >= self.steps_done}
        return any(dataset.name not in done for dataset in spec.datasets)

    def evaluation_due(self, step: int) -> bool:
        """Whether the weights after a step are to be evaluated."""
        spec = self.run.spec
        return spec.evaluation is not None and (step % spec.evaluation.every_steps == 0 or step == spec.training.steps)

    async def evaluate(self, step: int) -> None:
        """Accuracy on every evaluation data set; does not touch the data's order or random numbers."""
        spec = self.run.spec.evaluation
        if spec is None:
            return
        settings = evaluation.settings(self.run.spec, spec)
        accuracies: dict[str, float] = {}
        for name, prompts in self.inputs.evaluations.items():
            self.reporter.activity("evaluate")
            judged = partial(
                evaluation.evaluate, self.fleet.pool, prompts, self.scorer.score, settings, self.reporter.moved,
                self.inputs.unasked[name],
            )  # fmt: skip
            try:
                result = await draining.unless(self.drain, partial(self.turns.with_engines, judged))
            except draining.Drained:
                self.abandoned = True  # the next attempt makes it anew
                return
            await self._write_samples(f"evaluation-{name}-{step:06}", result.scored)
            found = result.figures
            with writing(f"the evaluation of {name} after step {step} could not be written", self.output):
                files.add_evaluation(self.output, step, name, found.document())
            self.reporter.evaluation(name, step, found.accuracy)
            self.trackers.evaluation(step, name, found.accuracy)
            self.log.info(
                "evaluated", step=step, dataset=name, accuracy=found.accuracy, low=found.low, high=found.high,
                answers=found.samples, mean_tokens=found.mean_tokens, truncated=found.truncated,
                no_answer=found.no_answer, timeouts=found.timeouts, bad_golds=found.bad_golds, failed=found.failed,
            )  # fmt: skip
            accuracies[name] = found.accuracy
        await self.keep_best(step, accuracies)

    async def trajectories(self, batch: Batch) -> Mapping[int, Trajectory]:
        """What the ranks need of the samples that are trained on, by id."""
        work = batch.trajectories(self.run.spec.rollout.samples_per_prompt)
        if not self.readers:
            return work
        samples = [s.sample for s in batch.trained]
        texts = await asyncio.to_thread(self.inputs.texts, samples)
        read = await asyncio.to_thread(reward_texts.read, self.readers, samples, texts)
        return {i: replace(t, texts=read[i]) for i, t in work.items()}

    async def record_step(
        self, clock: Clock, batch: Batch, annotation: Annotation | None, updates: Sequence[Update]
    ) -> None:
        """Leaves a step's metrics and samples in the run's folder and in the progress document."""
        if annotation is not None:
            batch = batch.with_models(self.run.spec.rewards, annotation.judged)
        step, samples = batch.step, [s.sample for s in batch.drawn]
        figures = metrics.of_step(batch, self.run.spec.rollout.samples_per_prompt, annotation, updates)
        tokens = sum(len(s.prompt.token_ids) + len(s.response_ids) for s in samples)
        figures |= {"engines": float(len(self.fleet.pool.engines)), "engines_lost": float(self.fleet.pool.lost)}
        figures |= {"samples_per_second": len(samples) / clock.total, "tokens_per_second": tokens / clock.total}
        seconds = {k: round(v, 3) for k, v in clock.seconds.items()} | {"total": round(clock.total, 3)}
        self.finished = step
        await asyncio.to_thread(self.fence.check)
        advantages = annotation.advantages if annotation else {}
        await self._write_samples(f"step-{step:06}", batch.drawn, advantages)
        with writing(f"the metrics of step {step} could not be written", self.output):
            files.add_step(self.output, step, figures, seconds)
        self.reporter.step(step, figures, seconds, clock.total)
        self.trackers.step(step, figures, seconds)
        self.log.step(step, self.run.spec.training.steps, figures, seconds, self.reporter.document().eta_seconds)

    def checkpoint_due(self, step: int) -> bool:
        """Whether the state after a step is to be saved."""
        spec = self.run.spec
        due = step % spec.checkpoint.every_steps == 0 or step == spec.training.steps
        return self.run.plan.durable and due

    async def checkpoint(self, step: int) -> None:
        """Saves the state after a step; older checkpoints go once it is complete."""
        self.reporter.activity("checkpoint")
        saved = await writer.write(
            self.ranks, self.output / store.CHECKPOINTS, step, self.fence, self.state(),
            attempt=self.run.attempt, keep=self.run.spec.checkpoint.keep,
        )  # fmt: skip
        self.saved = step
        self.reporter.checkpoint(step, str(saved.folder))
        self.log.info("checkpoint complete", step=step, folder=str(saved.folder))

    async def checkpoint_finished(self) -> None:
        """Saves the last finished step, unless it is saved already or nothing outlives the pods."""
        if self.run.plan.durable and self.finished > self.saved:
            await self.checkpoint(self.finished)

    def state(self) -> dict[str, Any]:
        """The driver's part of a checkpoint, as plain data; `restore` takes it up."""
        return {
            "cursor": self.cursor.document(),
            "kl_coefficient": self.kl_coefficient,
            "evaluations": [e.document() for e in self.reporter.document().evaluations],
            "trackers": self.trackers.ids,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on where the driver's part of a checkpoint stands."""
        self.cursor = cursor.restore(state["cursor"], self.cursor.seed, self.cursor.size)
        self.kl_coefficient = state["kl_coefficient"]
        self.reporter.restore([EvaluationProgress.model_validate(e) for e in state["evaluations"]])

    async def export(self) -> None:
        """Leaves the trained policy in the run's folder, as a plain Hugging Face folder; nothing was trained where the
        job only evaluates. Raises Drained where an evaluation is still to be made."""
        if self.abandoned:
            raise draining.Drained
        if self.run.plan.durable and self.run.spec.training.steps:
            self.reporter.activity("export")
            folder = await kept_models.keep_trained(self.ranks, self.output, self.fence)
            self.reporter.model(str(folder))

    async def keep_best(self, step: int, accuracies: Mapping[str, float]) -> None:
        """Exports the policy where the evaluation that `checkpoint.best` names is the best so far."""
        if not (self.run.plan.durable and accuracies and self.run.spec.training.steps):
            return
        dataset = self.run.spec.checkpoint.best or next(iter(accuracies))
        new = best.Best(step, dataset, accuracies[dataset])
        if kept_models.is_best(self.output, new):
            self.reporter.activity("export")
            folder = await kept_models.keep_best(self.ranks, self.output, self.fence, new)
            self.log.info("best model so far", step=step, dataset=dataset, accuracy=new.accuracy, folder=str(folder))

    async def resume(self) -> None:
        """Takes up the newest complete checkpoint, where there is one."""
        newest, skipped = await asyncio.to_thread(store.newest, self.output / store.CHECKPOINTS)
        for unsound in skipped:
            self.log.warning("checkpoint skipped", checkpoint=unsound.name, why=unsound.why)
        if skipped and newest is None:
            self.log.warning("the run begins anew", why="none of its checkpoints can be used")
        tracker_ids: Mapping[str, str] = {}
        if newest is None and self.run.resume_from is not None:
            newest = await asyncio.to_thread(other_run.checkpoint, self.run.resume_from)
        if newest is not None:
            await self.ranks.load(str(newest.folder))
            state = store.state_of(newest)
            self.restore(state)
            # another run's curves are its own
            tracker_ids = state["trackers"] if newest.folder.is_relative_to(self.output) else {}
            self.reporter.checkpoint(newest.step, str(newest.folder))
            self.steps_done = self.finished = newest.step
            self.saved = newest.step if newest.folder.is_relative_to(self.output) else 0
            self.log.info("resumed", step=newest.step, folder=str(newest.folder))
        files.forget_after(self.output, self.steps_done)
        for row in files.read_steps(self.output):
            self.reporter.steps.append(StepPoint(row["step"], row.get("reward"), row["seconds"]))
        self.trackers = make_trackers(self.run, self.steps_done, tracker_ids, self.log)

    async def _write_samples(
        self, name: str, scored: Sequence[Scored], advantages: Mapping[int, float] | None = None
    ) -> None:
        texts = await asyncio.to_thread(self.inputs.texts, [s.sample for s in scored])
        with writing(f"the samples of {name} could not be written", self.output):
            await asyncio.to_thread(files.write_samples, self.output, name, scored, texts, advantages)
