"""Hand-over: files of /dev/shm by which one sender gives its buckets to the engines of its slot.

What a file holds is the road's matter: a bucket, or where a bucket lies on the GPU. It has a hard link for each reader,
which removes its own when it needs the sender's memory no more, so nothing is left after a sync:

    <prefix>00003.writing   while it is written
    <prefix>00003-7         bucket 3, not yet taken by engine 7
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.weights.road import Local

WINDOW = 2
"""Buckets that a sender may be ahead of its slowest reader: bounds the memory of a sync."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02  # seconds between looks at the folder


class Handover:
    """The sending side of one sync."""

    def __init__(self, road: Local) -> None:
        self._road = road
        self.count = 0
        """Buckets offered so far."""

    def await_room(self) -> None:
        """Waits while the slowest reader is WINDOW buckets behind.

        Raises TrainerFailure(WeightSyncFailed) where it does not take its bucket in time.
        """
        self._await_taken(self.count - WINDOW)

    def offer(self, write: Callable[[Path], None]) -> None:
        """Offers the next bucket to all readers, as the file that `write` writes."""
        part = Path(f"{self._road.prefix}{self.count:05d}.writing")
        try:
            write(part)
            for reader in self._road.readers:
                os.link(part, _path(self._road.prefix, self.count, reader))
        finally:
            part.unlink(missing_ok=True)
        self.count += 1

    def finish(self) -> None:
        """Waits until every bucket is taken."""
        self._await_taken(self.count - 1)

    def _await_taken(self, bucket: int) -> None:
        for reader in self._road.readers if bucket >= 0 else ():
            path = _path(self._road.prefix, bucket, reader)
            _wait(
                lambda path=path: not path.exists(),
                self._road.timeout,
                f"engine {reader} did not read weight bucket {bucket} within {self._road.timeout:.0f} s",
            )


def offered(road: Local, number: int) -> Path:
    """The file of a bucket, once it is offered; the reader takes the bucket by removing it.

    Raises TrainerFailure(WeightSyncFailed) where it does not come in time.
    """
    (reader,) = road.readers
    path = _path(road.prefix, number, reader)
    _wait(
        path.exists,
        road.timeout,
        f"the sender of {road.prefix} did not write weight bucket {number} within {road.timeout:.0f} s",
    )
    return path


def remove(prefix: str) -> int:
    """Removes what a broken sync left under a prefix; returns the number of files."""
    start = Path(prefix)
    left = [p for p in start.parent.iterdir() if p.name.startswith(start.name)]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def check_size(number: int, wanted: int, got: int) -> None:
    """Raises TrainerFailure(WeightSyncFailed) where a bucket has other bytes than its parameters."""
    if wanted != got:
        raise TrainerFailure(
            FailureReason.WEIGHT_SYNC_FAILED,
            f"weight bucket {number} holds {got} bytes where its parameters have {wanted}: sender and engine disagree "
            "on the model",
        )


def _path(prefix: str, bucket: int, reader: int) -> Path:
    return Path(f"{prefix}{bucket:05d}-{reader}")


def _wait(ready: Callable[[], bool], timeout: float, otherwise: str) -> None:
    deadline, pause = time.monotonic() + timeout, _FIRST_PAUSE
    while not ready():
        if time.monotonic() > deadline:
            raise TrainerFailure(FailureReason.WEIGHT_SYNC_FAILED, otherwise)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
