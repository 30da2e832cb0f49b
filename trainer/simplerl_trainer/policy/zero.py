"""ZeRO stages 1 to 3 (https://arxiv.org/abs/1910.02054) by DeepSpeed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isfinite, nan
from types import BuiltinFunctionType
from typing import Any, TypeVar

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.runtime.bf16_optimizer import BF16_Optimizer
from torch import nn
from transformers.integrations import HfDeepSpeedConfig

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.training import Offload, Optimizer, Precision, ZeroStage
from simplerl_trainer.checkpoints.shards import Shard
from simplerl_trainer.policy import partitions, zero_settings
from simplerl_trainer.policy.offload import tensors_of
from simplerl_trainer.policy.trained import AtHand, OptimizerStep, adamw, go_on_after, make_moments, steps_taken

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
        offload: Offload | None = None,
    ) -> None:
        """`layers` are the class names of the decoder layers. `resident`: whether whole weights stay between passes
        under stage 3; absent: where they are small for the device."""
        settings = configuration(module, stage, precision, layers, device, resident, optimizer.max_grad_norm, offload)
        self._engine, *_ = deepspeed.initialize(
            model=module, optimizer=adamw(list(module.parameters()), optimizer), config=settings
        )
        check_engine(module, stage, layers)
        self.module = module
        self._places = partitions.places(module, self._engine.optimizer)
        self._stage = stage
        self._device = device
        self._ranks = dist.get_world_size()

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self._engine(*inputs, **options)

    def backward(self, loss: torch.Tensor, last: bool) -> None:
        self._engine.set_gradient_accumulation_boundary(last)
        self._engine.backward(loss * self._ranks)  # DeepSpeed averages over ranks

    def is_finite(self) -> bool:
        bad = torch.zeros(1, device=self._device)
        for gradient in self._gradients():
            bad += (~gradient.isfinite().all()).to(bad.device)
        dist.all_reduce(bad)
        return not bad.item()

    def step(self, learning_rate: float, skip: bool) -> OptimizerStep:
        if skip:
            # a gradient that is not finite is dropped by DeepSpeed's own rules, with all that it keeps beside it
            for gradient in self._gradients():
                gradient.fill_(nan)
        for group in self._engine.optimizer.param_groups:
            group["lr"] = learning_rate
        self._engine.step()
        norm = float(self._engine.get_global_grad_norm())
        applied = isfinite(norm) and self._engine.was_step_applied()
        if not applied:
            self._drop_gradients()
        return OptimizerStep(norm, applied)

    def _drop_gradients(self) -> None:
        """DeepSpeed forgets the gradients of a step that it skips, but not where the optimizer is on the host: the next
        ones would be added to them."""
        optimizer = self._engine.optimizer
        if self._stage is not ZeroStage.PARAMETERS and getattr(optimizer, "cpu_offload", False):
            for group in optimizer.averaged_gradients:
                optimizer.averaged_gradients[group] = None

    def _gradients(self) -> Iterator[torch.Tensor]:
        """This rank's part of the gradient, after the last backward pass; DeepSpeed has no public name for it."""
        # where the optimizer is offloaded it looks at each parameter's norm only
        optimizer = self._engine.optimizer
        if isinstance(optimizer, BF16_Optimizer):  # what DeepSpeed makes of stage 1 with bfloat16
            yield from optimizer.fp32_groups_gradient_flat_partition
            return
        for gradients in optimizer.averaged_gradients.values():
            yield from (g for g in gradients or () if g is not None)
        yield from getattr(optimizer, "norm_for_param_grads", {}).values()

    def gathered(self, parameters: Sequence[nn.Parameter]) -> AbstractContextManager[Any]:
        if self._stage is not ZeroStage.PARAMETERS:
            return nullcontext()
        return deepspeed.zero.GatheredParameters(list(parameters), modifier_rank=None)

    def tensors(self) -> Iterator[torch.Tensor]:
        return tensors_of(self.module, self._engine.optimizer)

    def held(self) -> Sequence[Shard]:
        optimizer = self._engine.optimizer
        make_moments(optimizer.optimizer, partitions.masters(optimizer))
        return partitions.shards(self._places, optimizer)

    def written(self, at_hand: AtHand) -> Sequence[Shard]:
        return partitions.shards(self._places, self._engine.optimizer, at_hand)

    def steps(self) -> torch.Tensor:
        optimizer = self._engine.optimizer
        return steps_taken(optimizer.optimizer, partitions.masters(optimizer)[0])

    def publish(self, steps: int) -> None:
        optimizer = self._engine.optimizer
        go_on_after(optimizer.optimizer, partitions.masters(optimizer), steps)
        partitions.publish(optimizer)


class Frozen:
    """A model that is only run: partitioned under stage 3, else whole on every rank."""

    def __init__(
        self,
        module: nn.Module,
        stage: ZeroStage,
        precision: Precision,
        layers: Sequence[str],
        device: torch.device,
        offload: Offload | None = None,
    ) -> None:
        module.requires_grad_(False)
        module.eval()
        self._module = module
        self._run: Any = module
        self._engine: Any = None
        if stage is not ZeroStage.PARAMETERS:
            self._run = module.to(device)
            return
        only_weights = Offload(parameters=offload is not None and offload.parameters)
        self._engine, *_ = deepspeed.initialize(
            model=module, config=configuration(module, stage, precision, layers, device, None, None, only_weights)
        )
        check_engine(module, stage, layers)
        self._run = self._engine

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self._run(*inputs, **options)

    def tensors(self) -> Iterator[torch.Tensor]:
        """Everything that it holds on the device."""
        return tensors_of(self._module, getattr(self._engine, "optimizer", None))


def load_partitioned(
    load: Callable[[], M], stage: ZeroStage, precision: Precision, device: torch.device, offload: Offload | None = None
) -> M:
    """The model that `load` reads from a Hugging Face folder; under stage 3 each rank keeps its part only."""
    if stage is not ZeroStage.PARAMETERS:
        return load()
    # transformers partitions as it loads while this object lives
    while_loading = HfDeepSpeedConfig(
        zero_settings.minimal(stage, precision, cuda=device.type == "cuda", offload=offload)
    )
    model = load()
    del while_loading
    return model


def check_engine(module: nn.Module, stage: ZeroStage, layers: Sequence[str]) -> None:
    """Asserts what DeepSpeed was asked for and does not say when it is not so.

    Under stage 3 a leaf module that is not a decoder layer gives zero gradients without an error, and its memory
    efficient linear map stays in torch for the whole process. Raises TrainerFailure(INTERNAL).
    """
    if not isinstance(nn.functional.linear, BuiltinFunctionType):
        raise TrainerFailure(
            FailureReason.INTERNAL,
            "DeepSpeed has replaced torch's linear map in this process: set memory_efficient_linear to false",
        )
    leaves = {type(leaf).__name__ for leaf in deepspeed.utils.get_z3_leaf_modules(module)}
    if stage is ZeroStage.PARAMETERS and leaves != set(layers):
        raise TrainerFailure(
            FailureReason.INTERNAL,
            f"DeepSpeed gathers {', '.join(sorted(leaves)) or 'nothing'} as one, not the decoder layers "
            f"{', '.join(layers)}: gradients would be lost",
        )


def configuration(
    module: nn.Module,
    stage: ZeroStage,
    precision: Precision,
    layers: Sequence[str],
    device: torch.device,
    resident: bool | None,
    max_grad_norm: float | None = None,
    offload: Offload | None = None,
) -> dict[str, Any]:
    """DeepSpeed's settings for a model on a device (see zero_settings)."""
    parameters = sum(getattr(p, "ds_numel", p.numel()) for p in module.parameters())
    if resident is None:
        resident = zero_settings.resident(parameters, precision, gpu_bytes(device))
    return zero_settings.configuration(
        parameters,
        stage,
        precision,
        layers,
        cuda=device.type == "cuda",
        resident=resident,
        max_grad_norm=max_grad_norm,
        offload=offload,
    )


def gpu_bytes(device: torch.device) -> int | None:
    """Memory of a GPU; None for the CPU."""
    return None if device.type == "cpu" else int(torch.cuda.get_device_properties(device).total_memory)
