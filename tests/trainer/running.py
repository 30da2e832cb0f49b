"""Real runs of `simplerl train` in processes of their own, of which nothing is left behind."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
SIMPLERL = Path(sys.executable).with_name("simplerl")
TINY = ROOT / "examples/tiny.yaml"


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended."""

    code: int
    """Its exit code."""
    log: Path
    """What it said on stdout and stderr."""

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")


def train(output: Path, settings: Sequence[str] = (), seconds: float = 300, file: Path = TINY) -> Ended:
    """Trains in a folder to the end; fails where that takes longer than `seconds` seconds."""
    with started(output, settings, file) as process:
        return Ended(process.wait(timeout=seconds), said(output))


@contextmanager
def started(output: Path, settings: Sequence[str] = (), file: Path = TINY) -> Iterator[subprocess.Popen[bytes]]:
    """A training process at work; it and all that it started are gone afterwards."""
    command = [SIMPLERL, "train", file, "--output", output, *(w for s in settings for w in ("--set", s))]
    with said(output).open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=output.parent, start_new_session=True)
    try:
        yield process
    finally:
        end(process)


def said(output: Path) -> Path:
    """The file of what the runs in a folder said."""
    return output.with_name(f"{output.name}.txt")


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills a training process, as a machine that goes down would, and the processes that it started."""
    if process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait(timeout=30)
        for child in family:
            if child.is_running():  # psutil compares the time of its start too: it is still the same process
                child.kill()
        _, alive = psutil.wait_procs(family, timeout=30)
        assert not alive, f"processes of the run are left: {alive}"


def part(process: subprocess.Popen[bytes], name: str) -> psutil.Process:
    """A process of a training process at work, by the name of its actor's class."""
    return next(c for c in psutil.Process(process.pid).children(recursive=True) if name in " ".join(c.cmdline()))


def eventually(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 240) -> None:
    """Waits for something that a process at work will do."""
    bound = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"the run ended with {process.returncode} before"
        assert time.monotonic() < bound, f"not within {seconds} s"
        time.sleep(0.1)


def metrics(output: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl."""
    file = output / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def events(output: Path, message: str) -> list[dict[str, Any]]:
    """The lines of a run's driver.log with a message."""
    lines = (output / "driver.log").read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line))["message"] == message]


def accuracies(output: Path) -> dict[int, float]:
    """Accuracy on the held-out questions by the step after which it was measured."""
    return {e["step"]: e["accuracy"] for e in events(output, "evaluated")}
