"""Two evaluations of the same models and data sets, sample by sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.evaluation import folder, records

SHOWN = 10
"""Ids of samples that are named."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How a model's samples differ on a data set."""

    model: str
    dataset: str
    common: int
    """Samples that both evaluations hold."""
    responses: Sequence[int]
    """Ids of those whose responses differ."""
    verdicts: Sequence[int]
    """Ids of those whose verdicts differ."""


def check(theirs: Path) -> None:
    """Raises TrainerFailure(INVALID_INPUT) where there is no evaluation, before hours are spent on ours."""
    if not (theirs / folder.FILE).exists():
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"--compare {theirs} holds no {folder.FILE}: give the --output of another evaluation",
        )


def compare(ours: Path, theirs: Path, pairs: Sequence[tuple[str, str]]) -> list[Difference]:
    """What differs for each model and data set that both folders hold.

    Raises TrainerFailure(INVALID_INPUT) where they have nothing in common.
    """
    found = []
    for model, dataset in pairs:
        other = folder.samples(theirs, model, dataset)
        if other.exists():
            a, b = records.read(folder.samples(ours, model, dataset)), records.read(other)
            ids = sorted(a.keys() & b.keys())
            found.append(
                Difference(
                    model,
                    dataset,
                    len(ids),
                    [i for i in ids if a[i].response != b[i].response],
                    [i for i in ids if a[i].verdict != b[i].verdict],
                )
            )
    if not found:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"--compare {theirs} holds none of these models and data sets: give the --output of another evaluation",
        )
    return found


def table(differences: Sequence[Difference], console: Console) -> None:
    """How many samples differ, and which."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("model", "data"):
        shown.add_column(column, overflow="fold")
    for column in ("samples in both", "other response", "other verdict"):
        shown.add_column(column, justify="right")
    shown.add_column("ids with another verdict, or response", overflow="fold")
    for d in differences:
        ids = [*d.verdicts, *(i for i in d.responses if i not in set(d.verdicts))]
        named = ", ".join(map(str, ids[:SHOWN])) + (", …" if len(ids) > SHOWN else "")
        shown.add_row(d.model, d.dataset, str(d.common), str(len(d.responses)), str(len(d.verdicts)), named)
    console.print(shown)
