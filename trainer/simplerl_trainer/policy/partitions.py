"""Where DeepSpeed keeps a rank's part of the float32 masters and of AdamW's moments.

DeepSpeed's own accessors (deepspeed.utils.safe_get_local_fp32_param and so on) serve stage 3 only; those of the other
stages gather whole parameters, and none sets moments before the first step. So the optimizers' partitions are read
here, as DeepSpeed 0.19.8 has them: flat float32 tensors, in which `Place` finds a parameter's part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3
from torch import nn

from simplerl_trainer.checkpoints.shards import MASTER, Shard
from simplerl_trainer.policy.trained import AtHand, moments


@dataclass(frozen=True, slots=True)
class Place:
    """The part of one parameter that lies on this rank. It stays, wherever the tensors are moved meanwhile."""

    name: str
    shape: tuple[int, ...]
    """Of the whole parameter."""
    start: int
    """First element, of the flat parameter."""
    numel: int
    flat: int
    """Position among `masters`."""
    offset: int
    """First element there."""


def places(module: nn.Module, optimizer: Any) -> Sequence[Place]:
    """The parts of all parameters on this rank, of an optimizer fresh from deepspeed.initialize."""
    partitioned = isinstance(optimizer, DeepSpeedZeroOptimizer_Stage3)
    return list(_parts(module, optimizer) if partitioned else _fragments(module))


def shards(places: Sequence[Place], optimizer: Any, at_hand: AtHand = lambda tensor: tensor) -> Sequence[Shard]:
    """Views of the masters and moments at these places."""
    states = [
        {key: at_hand(t) for key, t in {MASTER: f.detach(), **moments(optimizer.optimizer, f)}.items()}
        for f in masters(optimizer)
    ]
    return [
        Shard(p.name, p.shape, p.start, {k: t.narrow(0, p.offset, p.numel) for k, t in states[p.flat].items()})
        for p in places
    ]


def masters(optimizer: Any) -> Sequence[torch.Tensor]:
    """The rank's masters, flat."""
    match optimizer:
        case DeepSpeedZeroOptimizer_Stage3():
            flats = optimizer.fp32_partitioned_groups_flat
        case BF16_Optimizer():
            flats = optimizer.fp32_groups_flat_partition
        case _:
            flats = optimizer.single_partition_of_fp32_groups
    return list(flats)


@torch.no_grad()
def publish(optimizer: Any) -> None:
    """Makes the model's weights those of the masters, on all ranks. Collective."""
    if not isinstance(optimizer, DeepSpeedZeroOptimizer_Stage3):
        optimizer.update_lp_params()
        return
    optimizer.checkpoint_event_prologue()
    for weights, master in zip(optimizer.fp16_partitioned_groups_flat, masters(optimizer), strict=True):
        weights.copy_(master)
    optimizer.checkpoint_event_epilogue()


def _parts(module: nn.Module, optimizer: Any) -> Iterator[Place]:
    """Stage 3: every parameter is cut into as many equal parts as there are ranks, the last ones padded."""
    for name, p in module.named_parameters():
        flat, offset, size = optimizer.grad_position[optimizer.get_param_id(p)]
        start = size * dist.get_rank()
        numel = min(size, p.ds_numel - start)
        if numel > 0:
            yield Place(name, tuple(p.ds_shape), start, numel, flat, offset)


def _fragments(module: nn.Module) -> Iterator[Place]:
    """Stages 1 and 2: all parameters one after the other are cut into as many parts as there are ranks."""
    for name, p in module.named_parameters():
        mapping: Any = getattr(p, "_hp_mapping", None)
        if mapping is not None:  # else it lies on other ranks
            whole, part = mapping.lp_fragment_address, mapping.hp_fragment_address
            yield Place(name, tuple(p.shape), whole.start, whole.numel, mapping.param_group_index, part.start)
