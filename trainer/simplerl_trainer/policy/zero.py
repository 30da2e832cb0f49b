"""ZeRO stages 1 to 3 (https://arxiv.org/abs/1910.02054) by DeepSpeed."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import deepspeed
import torch
import torch.distributed as dist
from torch import nn
from transformers.integrations import HfDeepSpeedConfig

from simplerl_api.spec.training import Optimizer, Precision, ZeroStage
from simplerl_trainer.policy.trained import OptimizerStep, adamw

_RESIDENT_BYTES = 512 * 2**20
"""On CPU, weights up to this size stay whole between passes under stage 3."""
_RESIDENT_SHARE = 1 / 16
"""On CUDA, weights up to this share of the GPU's memory."""
_BUCKET = 500_000_000
"""Elements of the largest communication bucket; DeepSpeed allocates it at once."""

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
        settings = configuration(module, stage, precision, layers, device, resident)
        settings["gradient_clipping"] = optimizer.max_grad_norm
        self._engine, *_ = deepspeed.initialize(
            model=module, optimizer=adamw(list(module.parameters()), optimizer), config=settings
        )
        self.module = module
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

    def save(self, folder: Path, name: str) -> None:
        self._engine.save_checkpoint(str(folder), tag=name, save_latest=False)
        # DeepSpeed leaves its conversion scripts beside the states: `simplerl` exports without them
        for script in folder.glob("zero_to_*.py"):
            script.unlink(missing_ok=True)

    def load(self, folder: Path, name: str) -> None:
        self._engine.load_checkpoint(str(folder), tag=name, load_lr_scheduler_states=False)


def load_partitioned(load: Callable[[], M], stage: ZeroStage, precision: Precision) -> M:
    """The model that `load` reads from a Hugging Face folder; under stage 3 each rank keeps its part only."""
    if stage is not ZeroStage.PARAMETERS:
        return load()
    # transformers partitions as it loads while this object lives
    while_loading = HfDeepSpeedConfig(_minimal(stage, precision))
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
) -> dict[str, Any]:
    """DeepSpeed's settings (https://www.deepspeed.ai/docs/config-json) for a model.

    Gradients are accumulated and communicated in float32. Under stage 3 a decoder layer is gathered as one (leaf
    module), which halves the host's time; the layer's class must be named, since a leaf above it silently gives zero
    gradients.
    """
    numel = sum(getattr(p, "ds_numel", p.numel()) for p in module.parameters())
    bucket = min(numel, _BUCKET)
    zero: dict[str, Any] = {
        "reduce_bucket_size": bucket,
        "allgather_bucket_size": bucket,
        "overlap_comm": device.type == "cuda" and stage is ZeroStage.PARAMETERS,
    }
    if stage is ZeroStage.PARAMETERS:
        zero |= {
            "leaf_module": {"classes": list(layers)},
            "stage3_prefetch_bucket_size": min(numel, 50_000_000),
        }
        if resident if resident is not None else numel * _bytes(precision) <= _resident_bytes(device):
            zero |= {
                "stage3_param_persistence_threshold": numel,
                "stage3_model_persistence_threshold": numel,
                "stage3_max_live_parameters": 10 * numel,
                "stage3_max_reuse_distance": 10 * numel,
            }
        else:
            zero |= {"stage3_param_persistence_threshold": min(100_000, numel // 10)}
    settings = _minimal(stage, precision)
    settings["zero_optimization"] |= zero
    return settings


def _minimal(stage: ZeroStage, precision: Precision) -> dict[str, Any]:
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,  # the boundaries are ours
        "steps_per_print": None,
        "bf16": {"enabled": precision is Precision.BF16},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        # its linear map replaces that of the whole process by a slower one with other rounding
        "zero_optimization": {"stage": int(stage), "memory_efficient_linear": False},
    }


def _bytes(precision: Precision) -> int:
    return 2 if precision is Precision.BF16 else 4


def _resident_bytes(device: torch.device) -> float:
    if device.type == "cpu":
        return _RESIDENT_BYTES
    return torch.cuda.get_device_properties(device).total_memory * _RESIDENT_SHARE
