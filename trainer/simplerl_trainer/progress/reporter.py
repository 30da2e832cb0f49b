"""The reporter holds the run's progress document and wakes those who wait for a newer one."""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simplerl_api.failures import FailureReason
from simplerl_api.progress import (
    Accuracy,
    CheckpointProgress,
    EngineProgress,
    EvaluationProgress,
    FailureProgress,
    ModelProgress,
    Progress,
    RunState,
    Versions,
)
from simplerl_trainer.progress.log import Log

_ETA_STEPS = 10
"""Newest steps whose mean time gives the estimate."""


@dataclass(frozen=True, slots=True)
class StepPoint:
    """What the page shows of a step."""

    step: int
    reward: float | None
    """Mean reward; None where it is not finite."""
    seconds: Mapping[str, float]
    """Seconds by part, and `total`."""


class Reporter:
    """The state of a run as others see it. Each visible change makes the sequence grow by one."""

    def __init__(self, submission_id: str, total_steps: int, log: Log) -> None:
        self._log = log
        self._document = Progress(
            submission_id=submission_id,
            sequence=1,
            state=RunState.STARTING,
            total_steps=total_steps,
            last_progress=time.time(),
        )
        self._changed = asyncio.Event()
        self._seconds: list[float] = []
        self.step_seconds: Mapping[str, float] = {}
        """Seconds of the newest step by part, for the metrics and the page."""
        self.steps: list[StepPoint] = []
        """Every step of the run, for the page's curves."""
        self.accuracies: dict[str, list[Accuracy]] = {}
        """Every evaluation of the run by its data set, for the page's curves."""

    def document(self) -> Progress:
        """The document as it is now, with the newest log lines."""
        return self._document.model_copy(update={"log": list(self._log.lines)})

    async def newer(self, since: int, wait: float) -> Progress:
        """The document once its sequence is greater than `since`, or as it is after `wait` seconds."""
        deadline = time.monotonic() + wait
        while self._document.sequence <= since and (left := deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                break
        return self.document()

    def moved(self) -> None:
        """Something moved: a sample, a micro-batch, an item. No visible change."""
        self._document = self._document.model_copy(update={"last_progress": time.time()})

    def activity(self, name: str) -> None:
        """The part of the step at work."""
        self._update(activity=name, sequence=self._document.sequence)

    def versions(self, versions: Versions) -> None:
        """Versions of what trains."""
        self._update(versions=versions)

    def engines(self, current: int, desired: int, idle: Sequence[str] = ()) -> None:
        """How many rollout engines live, how many are wanted, and the addresses of nodes that hold none any more."""
        new = EngineProgress(current=current, desired=desired, idle=list(idle))
        if new != self._document.engines:
            self._update(engines=new)

    def engines_desired(self, desired: int) -> None:
        """How many rollout engines are wanted; to be seen once they have started."""
        if (known := self._document.engines) is not None:
            self.engines(known.current, desired, known.idle)

    def training(self, step: int) -> None:
        """Training begins, or goes on after `step`."""
        self._update(state=RunState.TRAINING, step=step)

    def step(self, step: int, metrics: Mapping[str, float], seconds: Mapping[str, float], total: float) -> None:
        """A step is done: its metrics, its seconds by part and in all. Metrics that are not finite are only named.

        `metrics` holds samples_per_second and tokens_per_second.
        """
        finite = {k: rounded(v) for k, v in metrics.items() if math.isfinite(v)}
        self._seconds = [*self._seconds, total][-_ETA_STEPS:]
        self.step_seconds = seconds
        self.steps.append(StepPoint(step, finite.get("reward"), seconds))
        left = self._document.total_steps - step
        self._update(
            state=RunState.TRAINING,
            step=step,
            metrics=finite,
            non_finite=sorted(k for k, v in metrics.items() if not math.isfinite(v)),
            samples_per_second=finite.get("samples_per_second"),
            tokens_per_second=finite.get("tokens_per_second"),
            eta_seconds=rounded(left * sum(self._seconds) / len(self._seconds)),
        )

    def evaluation(self, dataset: str, step: int, accuracy: float) -> None:
        """An evaluation is done."""
        new = Accuracy(step=step, accuracy=rounded(accuracy))
        self.accuracies.setdefault(dataset, []).append(new)
        before = next((e for e in self._document.evaluations if e.dataset == dataset), None)
        entry = EvaluationProgress(
            dataset=dataset,
            first=before.first if before else new,
            best=before.best if before and before.best.accuracy >= new.accuracy else new,
            last=new,
        )
        others = [e for e in self._document.evaluations if e.dataset != dataset]
        order = [e.dataset for e in self._document.evaluations] + ([] if before else [dataset])
        self._update(evaluations=sorted([*others, entry], key=lambda e: order.index(e.dataset)))

    def restore(self, evaluations: list[EvaluationProgress]) -> None:
        """Results from before this attempt."""
        for e in evaluations:
            known = {point.step: point for point in (e.first, e.best, e.last)}
            self.accuracies[e.dataset] = [known[step] for step in sorted(known)]
        self._update(evaluations=evaluations)

    def checkpoint(self, step: int, path: str) -> None:
        """A checkpoint is complete."""
        self._update(checkpoint=CheckpointProgress(step=step, path=path))

    def model(self, path: str) -> None:
        """The model is exported."""
        self._update(model=ModelProgress(path=path))

    def succeeded(self) -> None:
        """The run ended well."""
        self._update(state=RunState.SUCCEEDED, activity="", eta_seconds=0.0)

    def drained(self) -> None:
        """The run ended early, as it was asked to; its last finished step is saved where there is a claim."""
        self._update(state=RunState.DRAINED, activity="", eta_seconds=None)

    def failed(self, reason: FailureReason, message: str) -> None:
        """The run ended otherwise."""
        failure = FailureProgress(reason=reason, message=self._log.redact(message))
        self._update(state=RunState.FAILED, activity="", failure=failure)

    def _update(self, **changes: object) -> None:
        update = {"sequence": self._document.sequence + 1, "last_progress": time.time(), **changes}
        self._document = self._document.model_copy(update=update)
        self._changed.set()
        self._changed = asyncio.Event()


def rounded(value: float, digits: int = 4) -> float:
    """The value to four significant digits, so that noise alone changes nothing that others see."""
    return float(f"{value:.{digits}g}")
