"""Tensors that leave the GPU for the machine's memory and come back in place, bit by bit the same.

DeepSpeed's own way (engine.offload_states) takes its FusedAdam only, which it compiles at first use, and knows nothing
of frozen models or of stage 0. Here a tensor's storage is emptied and filled again, so that every view of it and every
reference to it stays as it was, whatever made them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn


class Offloaded:
    """Storages on one device that can be out of its memory for a while."""

    def __init__(self, find: Callable[[], Iterable[torch.Tensor]], device: torch.device) -> None:
        """`find` lists the tensors, anew each time that they leave."""
        self._find = find
        self._device = device
        self._out: list[tuple[torch.UntypedStorage, torch.Tensor]] = []
        self._free: defaultdict[int, list[torch.Tensor]] = defaultdict(list)

    @property
    def is_out(self) -> bool:
        """Whether they are out of the device's memory."""
        return bool(self._out)

    @torch.no_grad()
    def leave(self) -> None:
        """Copies everything to the host and frees it on the device; nothing where that was done."""
        if self._out:
            return
        for storage in _storages(self._find(), self._device):
            copy = self._host(storage.nbytes())
            copy.copy_(_bytes(storage), non_blocking=True)
            self._out.append((storage, copy))
        self._wait()
        for storage, _ in self._out:
            storage.resize_(0)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()  # else torch keeps it from the engines' processes

    @torch.no_grad()
    def come_back(self) -> None:
        """Brings everything back to where it was; nothing where it is there."""
        for storage, copy in self._out:
            storage.resize_(copy.numel())
            _bytes(storage).copy_(copy, non_blocking=True)
        self._wait()
        for _, copy in self._out:
            self._free[copy.numel()].append(copy)
        self._out = []

    def at_hand(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor where its bytes are: itself, or a view of the host's copy while its storage is out."""
        storage = tensor.untyped_storage()._cdata
        for out, copy in self._out:
            if out._cdata == storage:
                place = (tensor.storage_offset(), tensor.size(), tensor.stride())
                return torch.empty(0, dtype=tensor.dtype).set_(copy.untyped_storage(), *place)
        return tensor

    def _host(self, size: int) -> torch.Tensor:
        """Page-locked memory, which is slow to get and is kept for the next time."""
        if self._free[size]:
            return self._free[size].pop()
        return torch.empty(size, dtype=torch.uint8, pin_memory=self._device.type == "cuda")

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def tensors_of(module: nn.Module, *others: Any) -> Iterator[torch.Tensor]:
    """The tensors of a module and of other objects: weights and ZeRO-3's parts of them, buffers, optimizers' states and
    whatever DeepSpeed's objects hold."""
    seen: set[int] = set()
    waiting: list[Any] = [*module.parameters(), *module.buffers(), *others]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        match found:
            case torch.Tensor():
                yield found
                waiting += [found.grad if found.is_leaf else None, getattr(found, "ds_tensor", None)]
                waiting.append(getattr(found, "grad_accum", None))
            case Mapping():
                waiting += [*found.keys(), *found.values()]
            case list() | tuple() | set():
                waiting += found
            case torch.optim.Optimizer():
                waiting += [found.state, found.param_groups]
            case nn.Module():
                pass  # the engine's module is the one above
            case object(__module__=str(name)) if name.startswith("deepspeed."):
                waiting += vars(found).values() if hasattr(found, "__dict__") else []


def _storages(tensors: Iterable[torch.Tensor], device: torch.device) -> list[torch.UntypedStorage]:
    """Each storage on the device once, but for those that are not torch's own, such as a file's mapped pages."""
    found: dict[int, torch.UntypedStorage] = {}
    for tensor in tensors:
        if tensor.device == device and tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            if storage.nbytes() and storage.resizable():
                found.setdefault(storage.data_ptr(), storage)
    return list(found.values())


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (storage.nbytes(),))
