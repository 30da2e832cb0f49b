"""ZeRO stages 1 to 3 (https://arxiv.org/abs/1910.02054) by DeepSpeed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import Any, TypeVar

import deepspeed
import torch
import torch.distributed as dist
from torch import nn
from transformers.integrations import HfDeepSpeedConfig

from simplerl_api.spec.training import Optimizer, Precision, ZeroStage
from simplerl_trainer.checkpoints.shards import Shard
from simplerl_trainer.policy import partitions, zero_settings
from simplerl_trainer.policy.trained import OptimizerStep, adamw, go_on_after, steps_taken

M = TypeVar("M", bound=nn.Module)


class Sharded:
    """A model whose optimizer (1), gradients (2) and parameters (3) are shared out among the ranks."""

    def __init__(
        self,
        module: nn.Module,
        optimizer: Optimizer,
        stage: ZeroStage,
        precision: Precision,
        layers: Sequence[str],
        device: torch.device,
        *,
        resident: bool | None = None,
    ) -> None:
        """`layers` are the class names of the decoder layers. `resident`: whether whole weights stay between passes
        under stage 3; absent: where they are small for the device."""
        settings = configuration(module, stage, precision, layers, device, resident, optimizer.max_grad_norm)
        self._engine, *_ = deepspeed.initialize(
            model=module, optimizer=adamw(list(module.parameters()), optimizer), config=settings
        )
        self.module = module
        self._places = partitions.places(module, self._engine.optimizer)
        self._stage = stage
        self._ranks = dist.get_world_size()

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self._engine(*inputs, **options)

    def backward(self, loss: torch.Tensor, last: bool) -> None:
        self._engine.set_gradient_accumulation_boundary(last)
        self._engine.backward(loss * self._ranks)  # DeepSpeed averages over ranks

    def step(self, learning_rate: float) -> OptimizerStep:
        for group in self._engine.optimizer.param_groups:
            group["lr"] = learning_rate
        self._engine.step()
        norm = float(self._engine.get_global_grad_norm())
        return OptimizerStep(norm, isfinite(norm) and self._engine.was_step_applied())

    def gathered(self, parameters: Sequence[nn.Parameter]) -> AbstractContextManager[Any]:
        if self._stage is not ZeroStage.PARAMETERS:
            return nullcontext()
        return deepspeed.zero.GatheredParameters(list(parameters), modifier_rank=None)

    def held(self) -> Sequence[Shard]:
        return partitions.shards(self._places, self._engine.optimizer)

    def written(self) -> Sequence[Shard]:
        return self.held()

    def steps(self) -> int:
        optimizer = self._engine.optimizer
        return steps_taken(optimizer.optimizer, partitions.masters(optimizer)[0])

    def publish(self, steps: int) -> None:
        optimizer = self._engine.optimizer
        go_on_after(optimizer.optimizer, partitions.masters(optimizer), steps)
        partitions.publish(optimizer)


def load_partitioned(load: Callable[[], M], stage: ZeroStage, precision: Precision) -> M:
    """The model that `load` reads from a Hugging Face folder; under stage 3 each rank keeps its part only."""
    if stage is not ZeroStage.PARAMETERS:
        return load()
    # transformers partitions as it loads while this object lives
    while_loading = HfDeepSpeedConfig(zero_settings.minimal(stage, precision))
    model = load()
    del while_loading
    return model


def freeze(
    module: nn.Module, stage: ZeroStage, precision: Precision, layers: Sequence[str], device: torch.device
) -> Callable[..., Any]:
    """A model that is only run: partitioned under stage 3, else whole on every rank."""
    module.requires_grad_(False)
    if stage is not ZeroStage.PARAMETERS:
        return module.to(device)
    engine, *_ = deepspeed.initialize(
        model=module, config=configuration(module, stage, precision, layers, device, None)
    )
    return engine


def configuration(
    module: nn.Module,
    stage: ZeroStage,
    precision: Precision,
    layers: Sequence[str],
    device: torch.device,
    resident: bool | None,
    max_grad_norm: float | None = None,
) -> dict[str, Any]:
    """DeepSpeed's settings for a model on a device (see zero_settings)."""
    parameters = sum(getattr(p, "ds_numel", p.numel()) for p in module.parameters())
    if resident is None:
        resident = zero_settings.resident(parameters, precision, _gpu_bytes(device))
    return zero_settings.configuration(
        parameters,
        stage,
        precision,
        layers,
        cuda=device.type == "cuda",
        resident=resident,
        max_grad_norm=max_grad_norm,
    )


def _gpu_bytes(device: torch.device) -> int | None:
    return None if device.type == "cpu" else int(torch.cuda.get_device_properties(device).total_memory)
