"""The driver's log: one JSON object a line, on stdout and in the run's folder; its last lines go with /progress."""

import json
import math
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simplerl_api.progress import LOG_LINES, Progress
from simplerl_trainer.progress.console import Console
from simplerl_trainer.redaction import Redaction

FINAL_EVENT = "final"
"""The `event` of the last line, which holds the final progress document under `progress`."""
SHOWN = ("reward", "accuracy", "kl", "response_length", "mismatch_max", "samples_per_second")
"""Metrics in a step's log line; metrics.jsonl has all."""


class Log:
    """Writes constant messages with keys. The values of secrets never leave the process."""

    def __init__(self, file: Path, secrets: Sequence[str] = (), console: bool = False) -> None:
        """`console`: people watch stdout, so that only the file gets JSON."""
        self._file = file.open("a", encoding="utf-8", newline="\n")
        self._console = Console() if console else None
        self.redaction = Redaction(secrets)
        """Hides what must not be said."""
        self.lines: deque[str] = deque(maxlen=LOG_LINES)

    def info(self, message: str, /, **keys: Any) -> None:
        """Something that goes as it should."""
        self._write("info", message, keys)

    def warning(self, message: str, /, **keys: Any) -> None:
        """Something that a person may want to look at."""
        self._write("warning", message, keys)

    def error(self, message: str, /, **keys: Any) -> None:
        """Something that ends the run or a part of it."""
        self._write("error", message, keys)

    def step(
        self, step: int, steps: int, metrics: Mapping[str, float], seconds: Mapping[str, float], eta: float | None
    ) -> None:
        """A step is done: one line, with the metrics that are looked at first. Those that are not finite are left out
        and named, whichever they are. `eta`: seconds to the end."""
        shown = {name: metrics[name] for name in SHOWN if math.isfinite(metrics.get(name, math.nan))}
        not_finite = sorted(name for name, value in metrics.items() if not math.isfinite(value))
        keys = {"step": step, **shown, **({"non_finite": not_finite} if not_finite else {}), "seconds": dict(seconds)}
        self._line("info", "step done", keys)
        if self._console:
            self._console.step(step, steps, metrics, seconds, eta)

    def final(self, document: Progress) -> None:
        """The end of the run, for a reader of the job's log who missed the last /progress."""
        line = json.dumps({"event": FINAL_EVENT, "progress": self._plain(document.document())})
        print(self.redact(line), flush=True)

    def redact(self, text: str) -> str:
        """The text without the values of secrets."""
        return self.redaction.text(text)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _plain(self, value: Any) -> Any:
        """The value without secrets, also where a text is JSON itself, and with figures that are not finite as texts:
        JSON has no such numbers."""
        match value:
            case str():
                return self.redact(value)
            case float() if not math.isfinite(value):
                return str(value)
            case Mapping():
                return {key: self._plain(v) for key, v in value.items()}
            case list() | tuple():
                return [self._plain(v) for v in value]
            case _:
                return value

    def _write(self, level: str, message: str, keys: dict[str, Any]) -> None:
        self._line(level, message, keys)
        if self._console:
            self._console.event(level, message, {key: self._plain(value) for key, value in keys.items()})

    def _line(self, level: str, message: str, keys: dict[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # ASCII: a line stays a line whatever the text holds (U+2028 is a line's end to some readers)
        record = {"time": time, "level": level, "message": message, **self._plain(keys)}
        line = self.redact(json.dumps(record, default=str, allow_nan=False))
        self.lines.append(line)
        if not self._console:
            print(line, flush=True)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as e:  # a disk that is full must not keep the run's end from being said
            print(f"error: the log's file cannot be written: {e.strerror}", file=sys.stderr, flush=True)
