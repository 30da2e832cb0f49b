"""What a process costs, what Prometheus' text says, and when objects change."""

import json
import math
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane


class Usage:
    """CPU and memory of a process, by /proc."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def cpu_seconds(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> int:
        """Peak of the resident set in MB of 10^6 bytes."""
        lines = (self._folder / "status").read_text().splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
        return round(kib * 1024 / 1e6)


def series(text: str) -> dict[str, float]:
    """Values by the name and labels of their series."""
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest of the ordered values that at least this share of them does not exceed."""
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)


class Watch:
    """Notes when each object of a path first became so, in a thread of its own."""

    def __init__(
        self, plane: ControlPlane, path: str, good: Callable[[Mapping[str, Any]], bool], seen: dict[str, float]
    ) -> None:
        self._plane, self._path, self._good, self._seen = plane, path, good, seen
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._changed = threading.Condition()
        self._stopped = False

    def start(self) -> None:
        self._version = self._plane.request("GET", self._path + "?limit=1")["metadata"]["resourceVersion"]
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True

    def wait_for(self, name: str, seconds: float) -> float:
        """When it became so, by time.monotonic()."""
        with self._changed:
            if not self._changed.wait_for(lambda: name in self._seen, seconds):
                raise AssertionError(f"timed out after {seconds:.0f} s waiting for the status of {name}")
            return self._seen[name]

    def _run(self) -> None:
        url = f"{self._plane.url}{self._path}?watch=1&resourceVersion={self._version}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        with urllib.request.urlopen(request, timeout=600, context=self._plane.tls) as lines:
            for line in lines:
                at, document = time.monotonic(), json.loads(line)["object"]
                if self._stopped:
                    return
                if self._good(document):
                    with self._changed:
                        self._seen.setdefault(document["metadata"]["name"], at)
                        self._changed.notify_all()
