"""What `simplerl grade` found, as a table for people."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simplerl_trainer.rewards.grade import Graded, summary

_STYLES = {"equal": "green", "different": "red", "no_answer": "yellow"}


def show(graded: Sequence[Graded], console: Console) -> None:
    """Prints a row a line, and what they come to."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("line", justify="right")
    table.add_column("score", justify="right")
    for column in ("verdict", "answer read", "why"):
        table.add_column(column, overflow="fold")
    for g in graded:
        verdict = str(g.score.verdict)
        table.add_row(
            str(g.line), f"{g.score.value:.4g}", Text(verdict, _STYLES.get(verdict, "bold red")),
            Text(g.score.extracted), Text(g.score.why),
        )  # fmt: skip
    console.print(table)
    console.print(f"{sentence(graded)}, mean score {summary(graded)['score']:.4g}")


def sentence(graded: Sequence[Graded]) -> str:
    """The figures over all lines."""
    found = summary(graded)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found["verdicts"].items())
    lines = f"{found['lines']} line{'s' if found['lines'] > 1 else ''}"
    return f"{lines}: {counts}; accuracy {found['accuracy']:.4g}"
