"""Buckets that stay on the GPU: one sender owns buffers of it, the engines of its slot open and copy them.

A file of the hand-over says which buffer holds a bucket. The sender allocates its buffers once and an engine opens each
once, since both cost milliseconds and an opened buffer cannot be moved. PyTorch's own sharing between processes is used
on the level of storages, which is the same from torch 2.11 to 2.13; its tensors would be opened anew for each bucket.
"""

import json
from pathlib import Path
from typing import Any

import torch

from simplerl_trainer.weights.buckets import LIMIT, Bucket
from simplerl_trainer.weights.handover import WINDOW, Handover, check_size, offered
from simplerl_trainer.weights.road import CudaIpc


class _Buffer:
    """Memory of this process's GPU that other processes may open."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = torch.empty(nbytes, dtype=torch.uint8, device=_device())
        self.address: list[Any] = [_as_text(part) for part in self.bytes.untyped_storage()._share_cuda_()]


_buffers: dict[int, _Buffer] = {}  # by bucket number modulo WINDOW: kept for all syncs of this process
_opened: dict[tuple[Any, ...], torch.Tensor] = {}  # [nbytes] uint8, by address


class Writer:
    """The sending side of one sync."""

    def __init__(self, road: CudaIpc) -> None:
        self._handover = Handover(road)

    def write(self, flat: torch.Tensor) -> None:
        """Copies a bucket into a buffer for all readers; waits while the slowest of them has not left that buffer.

        Raises TrainerFailure(WeightSyncFailed) where a reader does not read in time.
        """
        self._handover.await_room()
        buffer = _buffer(self._handover.count % WINDOW, flat.nbytes)
        buffer.bytes[: flat.nbytes].copy_(flat.view(-1).view(torch.uint8))
        torch.cuda.current_stream().synchronize()  # the readers' streams know nothing of this one
        letter = json.dumps({"nbytes": flat.nbytes, "address": buffer.address})
        self._handover.offer(lambda path: _write(path, letter))

    def finish(self) -> None:
        """Waits until every bucket is read."""
        self._handover.finish()


def read(road: CudaIpc, number: int, bucket: Bucket) -> torch.Tensor:
    """A copy of a bucket's flat tensor [bucket.numel] in this process's own memory.

    Raises TrainerFailure(WeightSyncFailed) where it does not come in time or has another size.
    """
    path = offered(road, number)
    letter = json.loads(path.read_text(encoding="utf-8"))
    dtype = getattr(torch, bucket.dtype)
    check_size(number, bucket.numel * dtype.itemsize, letter["nbytes"])
    flat = _open(letter["address"])[: letter["nbytes"]].view(dtype).clone()
    torch.cuda.current_stream().synchronize()  # the buffer is the sender's again once the file is gone
    path.unlink()
    return flat


def release() -> None:
    """Lets go of all buffers of this process, its own and those it opened."""
    _buffers.clear()
    _opened.clear()


def _buffer(place: int, nbytes: int) -> _Buffer:
    """The buffer at a place; a larger one where a single parameter is larger than a bucket should be."""
    held = _buffers.get(place)
    if held is None or held.bytes.numel() < nbytes:
        held = _buffers[place] = _Buffer(max(LIMIT, nbytes))
    return held


def _open(address: list[Any]) -> torch.Tensor:
    key = tuple(address)
    if key not in _opened:
        torch.cuda.init()
        # the same GPU may have another number in the sender's process
        handle = [_device().index, *(_from_text(part) for part in address[1:])]
        storage = torch.UntypedStorage._new_shared_cuda(*handle)
        _opened[key] = torch.empty(0, dtype=torch.uint8, device=_device()).set_(storage)
    return _opened[key]


def _device() -> torch.device:
    """The GPU of this process's slot: the only one that it sees, or its own among those of an engine over several."""
    return torch.device("cuda", torch.cuda.current_device())


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _as_text(part: Any) -> Any:
    return f"0x{part.hex()}" if isinstance(part, bytes) else part


def _from_text(part: Any) -> Any:
    return bytes.fromhex(part.removeprefix("0x")) if isinstance(part, str) else part
