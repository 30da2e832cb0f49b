"""Buckets as files of /dev/shm: one sender writes, the engines of its slot map the same pages.

A bucket is one file with a hard link for each reader. A reader removes its link as soon as it has mapped the file, so
the memory is free when the last reader has let go, and nothing is left after a sync:

    <prefix>00003.writing   while it is written
    <prefix>00003-7         bucket 3, not yet read by engine 7
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.road import SharedMemory

WINDOW = 2
"""Buckets that a sender may be ahead of its slowest reader: bounds the memory of a sync."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02  # seconds between looks at the folder


class Writer:
    """The sending side of one sync."""

    def __init__(self, road: SharedMemory) -> None:
        self._road = road
        self._written = 0

    def write(self, flat: torch.Tensor) -> None:
        """Leaves a bucket for all readers; waits while the slowest of them is WINDOW buckets behind.

        Raises TrainerFailure(WeightSyncFailed) where /dev/shm is full or a reader does not read in time.
        """
        self._await_read(self._written - WINDOW)
        part = Path(f"{self._road.prefix}{self._written:05d}.writing")
        try:
            _reserve(part, flat.nbytes)
            _map(part, flat.numel(), flat.dtype).copy_(flat.view(-1))
            for reader in self._road.readers:
                os.link(part, _path(self._road.prefix, self._written, reader))
        finally:
            part.unlink(missing_ok=True)
        self._written += 1

    def finish(self) -> None:
        """Waits until every bucket is read."""
        self._await_read(self._written - 1)

    def _await_read(self, bucket: int) -> None:
        for reader in self._road.readers if bucket >= 0 else ():
            path = _path(self._road.prefix, bucket, reader)
            _wait(
                lambda path=path: not path.exists(),
                self._road.timeout,
                f"engine {reader} did not read weight bucket {bucket} within {self._road.timeout:.0f} s",
            )


def read(road: SharedMemory, number: int, bucket: Bucket) -> torch.Tensor:
    """A bucket's flat tensor [bucket.numel], mapped: its pages live as long as the tensor does.

    Raises TrainerFailure(WeightSyncFailed) where it does not come in time or has another size.
    """
    (reader,) = road.readers
    path = _path(road.prefix, number, reader)
    _wait(
        path.exists,
        road.timeout,
        f"the sender of {road.prefix} did not write weight bucket {number} within {road.timeout:.0f} s",
    )
    dtype = getattr(torch, bucket.dtype)
    wanted, got = bucket.numel * dtype.itemsize, path.stat().st_size
    if wanted != got:
        raise TrainerFailure(
            FailureReason.WEIGHT_SYNC_FAILED,
            f"weight bucket {number} holds {got} bytes where its parameters have {wanted}: sender and engine disagree "
            "on the model",
        )
    flat = _map(path, bucket.numel, dtype)
    path.unlink()
    return flat


def remove(prefix: str) -> int:
    """Removes what a broken sync left under a prefix; returns the number of files."""
    start = Path(prefix)
    left = [p for p in start.parent.iterdir() if p.name.startswith(start.name)]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def _path(prefix: str, bucket: int, reader: int) -> Path:
    return Path(f"{prefix}{bucket:05d}-{reader}")


def _reserve(path: Path, nbytes: int) -> None:
    """Takes the pages now: a write to a mapping of a full tmpfs would end the process with SIGBUS."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, nbytes)
    except OSError as error:
        raise TrainerFailure(
            FailureReason.WEIGHT_SYNC_FAILED,
            f"{path.parent} has no room for a weight bucket of {nbytes / 2**20:.0f} MiB ({error.strerror}): raise "
            "cluster.shmSize",
        ) from error
    finally:
        os.close(descriptor)


def _map(path: Path, numel: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_file(str(path), shared=True, size=numel, dtype=dtype)


def _wait(ready: Callable[[], bool], timeout: float, otherwise: str) -> None:
    deadline, pause = time.monotonic() + timeout, _FIRST_PAUSE
    while not ready():
        if time.monotonic() > deadline:
            raise TrainerFailure(FailureReason.WEIGHT_SYNC_FAILED, otherwise)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
