"""The roads inside a slot, by their kind."""

from typing import Protocol

import torch

from simplerl_trainer.weights import cuda_ipc, shared_memory
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.road import CudaIpc, Local, SharedMemory


class Writer(Protocol):
    """The sending side of one sync."""

    def write(self, flat: torch.Tensor) -> None:
        """Gives a bucket's flat tensor [numel] to all readers; waits while the slowest of them is too far behind."""

    def finish(self) -> None:
        """Waits until every bucket is read."""


def writer(road: Local) -> Writer:
    """The sending side of a road."""
    match road:
        case SharedMemory():
            return shared_memory.Writer(road)
        case CudaIpc():
            return cuda_ipc.Writer(road)


def read(road: Local, number: int, bucket: Bucket) -> torch.Tensor:
    """A bucket's flat tensor [bucket.numel].

    Raises TrainerFailure(WeightSyncFailed) where it does not come in time or has another size.
    """
    match road:
        case SharedMemory():
            return shared_memory.read(road, number, bucket)
        case CudaIpc():
            return cuda_ipc.read(road, number, bucket)
