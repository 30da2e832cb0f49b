"""From the driver's document to the figures in the status, and to the strings of the columns."""

import math
from pathlib import PurePosixPath

from simplerl_api.progress import Accuracy, Progress, RunState
from simplerl_api.spec.model import Model
from simplerl_api.status import (
    AccuracyStatus,
    CheckpointStatus,
    EvaluationStatus,
    ModelStatus,
    Status,
    Summary,
    TrainingStatus,
    VersionsStatus,
)
from simplerl_operator import clock

MAX_METRICS = 64
MAX_ETA = 2**53
"""An integer of the API is at most 64 bits long."""
MAX_EVALUATIONS = 16


def rounded(value: float) -> float:
    """Four significant digits: 5e-7 stays itself. The very largest floats, which would round to infinity, stay too."""
    short = float(f"{value:.4g}")
    return short if math.isfinite(short) else value


def training(progress: Progress, before: TrainingStatus | None, now: float) -> TrainingStatus:
    """The newest figures; a step never falls, and the time changes only with a step."""
    total, percent = progress.total_steps, _percent(progress)
    same = before is not None and progress.step <= before.step and total == before.total_steps
    if before is not None and same and percent <= before.progress_percent:
        return before
    return TrainingStatus(
        step=progress.step,
        total_steps=total,
        progress_percent=percent,
        eta_seconds=None if progress.eta_seconds is None else min(round(progress.eta_seconds), MAX_ETA),
        samples_per_second=None if progress.samples_per_second is None else rounded(progress.samples_per_second),
        tokens_per_second=None if progress.tokens_per_second is None else rounded(progress.tokens_per_second),
        metrics={name: rounded(progress.metrics[name]) for name in sorted(progress.metrics)[:MAX_METRICS]},
        last_update_time=clock.rfc3339(now),
    )


def _percent(progress: Progress) -> int:
    """Of the steps; a job without any, which only evaluates, is there when it has succeeded."""
    if progress.total_steps == 0:
        return 100 if progress.state is RunState.SUCCEEDED else 0
    return min(100, progress.step * 100 // progress.total_steps)


def evaluations(progress: Progress) -> list[EvaluationStatus]:
    """Results by data set."""
    return [
        EvaluationStatus(dataset=e.dataset, first=_accuracy(e.first), best=_accuracy(e.best), last=_accuracy(e.last))
        for e in progress.evaluations[:MAX_EVALUATIONS]
    ]


def read(progress: Progress, before: Status, now: float) -> dict[str, object]:
    """Everything of the status that comes from the driver's document, by the names of Status' fields."""
    checkpoint, model, versions = progress.checkpoint, progress.model, progress.versions
    return {
        "training": training(progress, before.training, now),
        "evaluations": evaluations(progress) or before.evaluations,
        "checkpoint": CheckpointStatus(step=checkpoint.step, path=checkpoint.path) if checkpoint else before.checkpoint,
        "model": ModelStatus(path=model.path) if model else before.model,
        "versions": VersionsStatus(**versions.model_dump()) if versions else before.versions,
        "last_progress_time": clock.rfc3339(min(now, max(progress.last_progress, _moved(before)))),
    }


def _moved(before: Status) -> float:
    """When anything moved that was written down; a driver that is heard anew does not take it back."""
    return clock.seconds(before.last_progress_time) if before.last_progress_time is not None else 0.0


def summary(status: Status, model: Model | None) -> Summary:
    """The strings of the columns."""
    figures, evaluation = status.training, next(iter(status.evaluations), None)
    reward = figures.metrics.get("reward") if figures else None
    duration = ""
    if status.start_time is not None and status.completion_time is not None:
        duration = clock.duration(clock.seconds(status.completion_time) - clock.seconds(status.start_time))
    return Summary(
        step=f"{figures.step}/{figures.total_steps}" if figures else "",
        progress=f"{figures.progress_percent}%" if figures else "",
        reward="" if reward is None else f"{reward:.2f}"[:16],
        eval="" if evaluation is None else _evaluation_text(evaluation),
        duration=duration,
        model=model_name(model) if model is not None else (status.summary.model if status.summary else ""),
    )


def model_name(model: Model) -> str:
    """`tiny`, the repository's name, or the base name of the model's folder."""
    if model.hub is not None:
        return model.hub.name[-64:]
    if model.path is None:
        return "tiny"
    return (PurePosixPath(model.path).name or model.path)[:64]


def _evaluation_text(evaluation: EvaluationStatus) -> str:
    accuracy = f" {evaluation.last.accuracy:.2f}"
    return evaluation.dataset[: 64 - len(accuracy)] + accuracy


def _accuracy(result: Accuracy) -> AccuracyStatus:
    return AccuracyStatus(step=result.step, accuracy=rounded(result.accuracy))
