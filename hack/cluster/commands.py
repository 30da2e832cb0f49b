"""Commands of the host: run with a time limit, and fail with a sentence that holds the command's own last words."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .errors import ClusterError

START = time.monotonic()


def say(message: str) -> None:
    print(f"{time.monotonic() - START:6.1f} s  {message}", file=sys.stderr, flush=True)


def run(
    command: Sequence[str | Path],
    doing: str,
    *,
    seconds: float = 60,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """The standard output; `doing` says what the command was for when it fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
            cwd=folder,
        )
    except FileNotFoundError:
        raise ClusterError(f"{doing} needs the program {words[0]}, which is not on PATH: install it") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"timed out after {seconds:.0f} s: {doing} ({shlex.join(words)})") from None
    if done.returncode != 0:
        raise ClusterError(f"{doing} failed with exit code {done.returncode}: {last_words(done.stderr or done.stdout)}")
    return done.stdout


def succeeds(command: Sequence[str | Path], seconds: float = 10) -> bool:
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def wait_for(what: str, ready: Callable[[], bool], seconds: float, log: Path | None = None, every: float = 0.1) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            tail = f"; the end of {log}: {last_words(log.read_text(errors='replace'))}" if log and log.exists() else ""
            raise ClusterError(f"timed out after {seconds:.0f} s: waiting for {what}{tail}")
        time.sleep(every)


def last_words(text: str, lines: int = 5) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:]) or "it said nothing"
