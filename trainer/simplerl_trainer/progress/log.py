"""The driver's log: one JSON object a line, on stdout and in the run's folder; its last lines go with /progress."""

import json
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simplerl_api.progress import LOG_LINES, Progress

FINAL_EVENT = "final"
"""The `event` of the last line, which holds the final progress document under `progress`."""
_REDACTED = "***"


class Log:
    """Writes constant messages with keys. The values of secrets never leave the process."""

    def __init__(self, file: Path, secrets: Sequence[str] = (), console: bool = False) -> None:
        """`console`: people watch stdout, so that only the file gets JSON."""
        self._file = file.open("a", encoding="utf-8", newline="\n")
        self._console = console
        # by line: a multi-line secret (a key file) may be printed a line at a time
        self._secrets = sorted(
            {s for secret in secrets for s in secret.splitlines() if len(s) >= 4}, key=len, reverse=True
        )
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

    def step(self, step: int, steps: int, figures: Mapping[str, float], seconds: Mapping[str, float]) -> None:
        """A step is done: one line, for people where they watch."""
        self._write("info", "step done", {"step": step, **figures, "seconds": dict(seconds)})
        if self._console:
            parts = " ".join(f"{k} {v:.4g}" for k, v in figures.items())
            print(f"step {step}/{steps}  {parts}  ({seconds['total']:.1f} s)", flush=True)

    def final(self, document: Progress) -> None:
        """The end of the run, for a reader of the job's log who missed the last /progress."""
        line = json.dumps({"event": FINAL_EVENT, "progress": document.document()}, ensure_ascii=True)
        print(self.redact(line), flush=True)

    def redact(self, text: str) -> str:
        """The text without the values of secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _REDACTED)
        return text

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, level: str, message: str, keys: dict[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # ASCII: a line stays a line whatever the text holds (U+2028 is a line's end to some readers)
        line = self.redact(json.dumps({"time": time, "level": level, "message": message, **keys}, default=str))
        self._file.write(line + "\n")
        self._file.flush()
        self.lines.append(line)
        if not self._console:
            print(line, flush=True)
        elif level != "info":
            print(
                self.redact(f"{level}: {message}" + "".join(f"\n  {k}: {v}" for k, v in keys.items())), file=sys.stderr
            )
