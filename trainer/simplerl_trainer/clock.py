"""Seconds of a step by part."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up wall-clock seconds by part of a step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.monotonic()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts the time inside to a part."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    @property
    def total(self) -> float:
        """Seconds since this clock was made."""
        return time.monotonic() - self._start
