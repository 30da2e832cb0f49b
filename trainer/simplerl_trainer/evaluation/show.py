"""What people see of an evaluation: bars while it goes on, and one table at its end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from simplerl_trainer.evaluation.metrics import Figures
from simplerl_trainer.evaluation.records import Record
from simplerl_trainer.rewards.outcome import Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """A model on a data set."""

    model: str
    dataset: str
    figures: Figures
    seconds: float
    """In which samples were drawn, in the newest sitting that drew some and came to its end."""
    tokens_per_second: float
    """Drawn in that time."""


@dataclass(slots=True)
class Counter:
    """The bar of a model on a data set."""

    _progress: Progress
    _task: TaskID
    _done: int = 0
    right: int = 0
    """Right answers so far."""

    def add(self, records: Sequence[Record]) -> None:
        """Samples were judged."""
        self._done += len(records)
        self.right += sum(r.verdict == Verdict.EQUAL for r in records)
        accuracy = f"{self.right / self._done:.3f}" if self._done else ""
        self._progress.update(self._task, completed=self._done, accuracy=accuracy)


class Bars:
    """A bar for each model and data set, on standard error; a line at its end where that is no terminal."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[accuracy]}"),
            TimeElapsedColumn(), TimeRemainingColumn(), console=self._console, disable=not self._console.is_terminal,
        )  # fmt: skip

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def counter(self, model: str, dataset: str, total: int) -> Iterator[Counter]:
        """The bar of a model on a data set."""
        task = self._progress.add_task(f"{model} {dataset}", total=total, accuracy="")
        counter = Counter(self._progress, task)
        yield counter
        self._progress.stop_task(task)
        if self._progress.disable:
            self.say(f"{model} {dataset}: {counter.right} of {total} right")

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._progress.console.print(text, style="dim", soft_wrap=True)


def table(rows: Sequence[Row], console: Console) -> None:
    """All models on all data sets, in per cent."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("model", overflow="fold")
    shown.add_column("data", overflow="fold")
    several = max((k for row in rows for k in row.figures.pass_at), default=1)
    more = [f"pass@{several}", f"maj@{several}"] if several > 1 else []
    for column in ("accuracy", "95 %", *more, "questions", "tokens", "cut", "no answer", "failed", "seconds", "tok/s"):
        shown.add_column(column, justify="right")
    for row in rows:
        found = row.figures
        at = [found.pass_at.get(several), found.majority_at.get(several)] if more else []
        shown.add_row(
            row.model, row.dataset, _percent(found.accuracy), f"{_percent(found.low)} to {_percent(found.high)}",
            *("" if v is None else _percent(v) for v in at),
            str(found.questions), f"{found.mean_tokens:.0f}", str(found.truncated), str(found.no_answer),
            str(found.failed + found.timeouts), f"{row.seconds:.0f}", f"{row.tokens_per_second:.0f}",
        )  # fmt: skip
    console.print(shown)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
