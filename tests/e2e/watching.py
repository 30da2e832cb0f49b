"""A watch on one job in the background, which keeps every version of it that the API server sent."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from hack.demo.target import Target


class Watch:
    """Keeps each version of a job's object; use it as a context."""

    def __init__(self, cluster: Target, name: str) -> None:
        self.seen: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [cluster.kubectl, "get", "simplerljobs", name, "-n", "default", "--watch", "-o", "json"],
            env={**os.environ, **cluster.environment()},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=10)
        self._thread.join(timeout=10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        decoder, text = json.JSONDecoder(), ""
        for line in self._process.stdout:
            text += line
            if line.rstrip() == "}":  # the end of a document that kubectl indents
                self.seen.append(decoder.decode(text))
                text = ""

    @property
    def last(self) -> dict[str, Any]:
        """The newest version; an empty object before the first."""
        return self.seen[-1] if self.seen else {}

    def until(self, what: str, holds: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any]:
        """The first version of which `holds` is true."""
        deadline, position = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            while position < len(self.seen):
                if holds(self.seen[position]):
                    return self.seen[position]
                if phase(self.seen[position]) == "Failed":
                    raise AssertionError(f"the job failed before {what}: {json.dumps(self.seen[position]['status'])}")
                position += 1
            time.sleep(0.2)
        raise AssertionError(
            f"waited {seconds:.0f} s for {what}; the job is now: {json.dumps(self.last.get('status'))}"
        )


def phase(job: dict[str, Any]) -> str:
    """The job's phase; empty where there is none yet."""
    return job.get("status", {}).get("phase", "")


def step(job: dict[str, Any]) -> int:
    """Finished steps."""
    return job.get("status", {}).get("training", {}).get("step", 0)


def condition(job: dict[str, Any], kind: str) -> dict[str, Any]:
    """A condition of the job; empty where it is not there."""
    return next((c for c in job.get("status", {}).get("conditions", []) if c["type"] == kind), {})
