"""ZeRO stage 0: plain data parallelism. Every rank holds everything; gradients are summed by one all-reduce."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from simplerl_api.spec.training import Optimizer
from simplerl_trainer.checkpoints.shards import MASTER, Shard, share
from simplerl_trainer.policy.offload import tensors_of
from simplerl_trainer.policy.trained import (
    AtHand,
    OptimizerStep,
    adamw,
    go_on_after,
    make_moments,
    moments,
    steps_taken,
)


class Replicated:
    """A whole model on every rank, with float32 masters and float32 gradient sums."""

    def __init__(self, module: nn.Module, optimizer: Optimizer, device: torch.device) -> None:
        self.module = module.to(device)
        self._max_norm = optimizer.max_grad_norm
        self._weights = list(self.module.parameters())
        whole = all(p.dtype.itemsize >= 4 for p in self._weights)
        self._masters = self._weights if whole else [nn.Parameter(p.detach().float()) for p in self._weights]
        self._optimizer = adamw(self._masters, optimizer)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.module(*inputs, **options)

    def backward(self, loss: torch.Tensor, last: bool) -> None:
        loss.backward()
        if self._masters is self._weights:
            return
        for master, weight in zip(self._masters, self._weights, strict=True):
            if weight.grad is not None:
                part = weight.grad.float()
                master.grad = part if master.grad is None else master.grad.add_(part)
                weight.grad = None

    def is_finite(self) -> bool:
        bad = torch.zeros(1, device=self._weights[0].device)
        for p in self._masters:
            if p.grad is not None:
                bad += ~p.grad.isfinite().all()
        dist.all_reduce(bad)
        return not bad.item()

    def step(self, learning_rate: float, skip: bool) -> OptimizerStep:
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self._masters]
        flat = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(flat)
        norm = float(flat.norm())
        flat.mul_(min(self._max_norm / (norm + 1e-6), 1.0))
        for p, part in zip(self._masters, flat.split([p.numel() for p in self._masters]), strict=True):
            p.grad = part.view_as(p)
        applied = isfinite(norm) and not skip
        if applied:
            for group in self._optimizer.param_groups:
                group["lr"] = learning_rate
            self._optimizer.step()
            self._publish()
        self._optimizer.zero_grad(set_to_none=True)
        return OptimizerStep(norm, applied)

    def gathered(self, parameters: Sequence[nn.Parameter]) -> AbstractContextManager[Any]:
        return nullcontext()

    def tensors(self) -> Iterator[torch.Tensor]:
        return tensors_of(self.module, self._masters, self._optimizer)

    def held(self) -> Sequence[Shard]:
        make_moments(self._optimizer, self._masters)
        return self._shards()

    def written(self, at_hand: AtHand) -> Sequence[Shard]:
        return share(self._shards(at_hand), dist.get_rank(), dist.get_world_size())

    def _shards(self, at_hand: AtHand = lambda tensor: tensor) -> Sequence[Shard]:
        named = zip(self.module.named_parameters(), self._masters, strict=True)
        return [
            Shard(name, tuple(p.shape), 0, {k: at_hand(t).view(-1) for k, t in self._state(master).items()})
            for (name, p), master in named
        ]

    def steps(self) -> torch.Tensor:
        return steps_taken(self._optimizer, self._masters[0])

    def publish(self, steps: int) -> None:
        go_on_after(self._optimizer, self._masters, steps)
        self._publish()

    def _state(self, master: nn.Parameter) -> dict[str, torch.Tensor]:
        return {MASTER: master.detach(), **moments(self._optimizer, master)}

    @torch.no_grad()
    def _publish(self) -> None:
        if self._masters is not self._weights:
            for weight, master in zip(self._weights, self._masters, strict=True):
                weight.copy_(master)
