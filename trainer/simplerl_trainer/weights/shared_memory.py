"""Buckets as files of /dev/shm: one sender writes, the engines of its slot map the same pages.

A reader takes its bucket as soon as it has mapped the file; the memory is free when the last one has let go.
"""

import os
from pathlib import Path

import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.handover import Handover, check_size, offered
from simplerl_trainer.weights.road import SharedMemory


class Writer:
    """The sending side of one sync."""

    def __init__(self, road: SharedMemory) -> None:
        self._handover = Handover(road)

    def write(self, flat: torch.Tensor) -> None:
        """Leaves a bucket for all readers; waits while the slowest of them is too far behind.

        Raises TrainerFailure(WeightSyncFailed) where /dev/shm is full or a reader does not read in time.
        """

        def fill(path: Path) -> None:
            _reserve(path, flat.nbytes)
            _map(path, flat.numel(), flat.dtype).copy_(flat.view(-1))

        self._handover.await_room()
        self._handover.offer(fill)

    def finish(self) -> None:
        """Waits until every bucket is read."""
        self._handover.finish()


def read(road: SharedMemory, number: int, bucket: Bucket) -> torch.Tensor:
    """A bucket's flat tensor [bucket.numel], mapped: its pages live as long as the tensor does.

    Raises TrainerFailure(WeightSyncFailed) where it does not come in time or has another size.
    """
    path = offered(road, number)
    dtype = getattr(torch, bucket.dtype)
    check_size(number, bucket.numel * dtype.itemsize, path.stat().st_size)
    flat = _map(path, bucket.numel, dtype)
    path.unlink()
    return flat


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
