"""What people see who watch a run on a terminal: a line a step, and what happens between the steps."""

import math
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console as Terminal
from rich.text import Text

_FIGURES = (
    ("reward", "reward"),
    ("accuracy", "accuracy"),
    ("kl", "kl"),
    ("response_length", "length"),
    ("samples_per_second", "samples/s"),
)
"""Metrics of a step's line, and what they are called there."""
_STYLES = {"info": "dim", "warning": "yellow", "error": "bold red"}
_LONGEST = 100
"""Characters of one value in an info line."""


class Console:
    """Steps and events as lines of text; warnings and errors go to stderr."""

    def __init__(self) -> None:
        self._out = Terminal(file=sys.stdout, highlight=False, soft_wrap=True)
        self._err = Terminal(file=sys.stderr, highlight=False, soft_wrap=True)

    def step(
        self, step: int, steps: int, metrics: Mapping[str, float], seconds: Mapping[str, float], eta: float | None
    ) -> None:
        """One finished step: figures of four digits, its seconds, and how long the rest will take."""
        width = len(str(steps))
        line = Text.assemble(("step ", "dim"), (f"{step:>{width}}/{steps}", "bold"))
        for name, shown in _FIGURES:
            if name in metrics:
                value = metrics[name]
                line.append(f"  {shown} ", "dim")
                line.append(f"{value:<8.4g}", "" if math.isfinite(value) else "bold red")
        line.append(f"  {seconds['total']:.1f} s", "dim")
        if eta is not None and step < steps:
            line.append(f"  {duration(eta)} left", "dim")
        self._out.print(line)

    def event(self, level: str, message: str, keys: Mapping[str, Any]) -> None:
        """Something else: one line, or for troubles a line for each key, whole."""
        style = _STYLES[level]
        if level == "info":
            values = (f"{k} {_short(v)}" for k, v in keys.items() if v not in (None, ""))
            self._out.print(Text("  ".join([message, *values]), style))
        else:
            lines = [f"{level}: {message}", *(f"  {key}: {value}" for key, value in keys.items())]
            self._err.print(Text("\n".join(lines), style))


def duration(seconds: float) -> str:
    """Seconds as people say them: 45s, 3m 20s, 2h 5m, 3d 4h."""
    whole = round(seconds)
    for unit, size, smaller, step in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // step}{smaller}"
    return f"{whole}s"


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
