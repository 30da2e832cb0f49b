"""DeepSpeed's settings (https://www.deepspeed.ai/docs/config-json) for a model. Pure: `simplerl plan` prints them."""

from collections.abc import Sequence
from typing import Any

from simplerl_api.memory import BUCKET
from simplerl_api.spec.training import Offload, Precision, ZeroStage

_RESIDENT_BYTES = 512 * 2**20
"""On CPU, weights up to this size stay whole between passes under stage 3."""
_RESIDENT_SHARE = 1 / 16
"""On CUDA, weights up to this share of the GPU's memory."""


def configuration(
    parameters: int,
    stage: ZeroStage,
    precision: Precision,
    layers: Sequence[str],
    *,
    cuda: bool,
    resident: bool,
    max_grad_norm: float | None = None,
    offload: Offload | None = None,
) -> dict[str, Any]:
    """The settings for a model of so many parameters, on CUDA or on CPU.

    Gradients are accumulated and communicated in float32. Under stage 3 a decoder layer is gathered as one (leaf
    module), which halves the host's time; the layer's class must be named, since a leaf above it silently gives zero
    gradients. `layers` are the class names of the decoder layers; `resident`: whether whole weights stay between passes
    under stage 3, which `offload.parameters` rules out; `max_grad_norm`: of a model that is trained.
    """
    offload = offload or Offload()
    bucket = min(parameters, BUCKET)
    zero: dict[str, Any] = {
        "reduce_bucket_size": bucket,
        "allgather_bucket_size": bucket,
        "overlap_comm": cuda and stage is ZeroStage.PARAMETERS,
    }
    if stage is ZeroStage.PARAMETERS:
        zero |= {
            "leaf_module": {"classes": list(layers)},
            "stage3_prefetch_bucket_size": min(parameters, 50_000_000),
        }
        if resident and not offload.parameters:
            zero |= {
                "stage3_param_persistence_threshold": parameters,
                "stage3_model_persistence_threshold": parameters,
                "stage3_max_live_parameters": 10 * parameters,
                "stage3_max_reuse_distance": 10 * parameters,
            }
        else:
            zero |= {"stage3_param_persistence_threshold": min(100_000, parameters // 10)}
    settings = minimal(stage, precision, cuda=cuda, offload=offload)
    settings["zero_optimization"] |= zero
    if max_grad_norm is not None:
        settings["gradient_clipping"] = max_grad_norm
    return settings


def minimal(stage: ZeroStage, precision: Precision, *, cuda: bool, offload: Offload | None = None) -> dict[str, Any]:
    """The settings that hold for every model, by which a model is also loaded."""
    offload = offload or Offload()
    host = {"device": "cpu", "pin_memory": cuda}
    zero: dict[str, Any] = {
        "stage": int(stage),
        # its linear map replaces that of the whole process by a slower one with other rounding
        "memory_efficient_linear": False,
    }
    if offload.optimizer:
        zero["offload_optimizer"] = host
    if offload.parameters:
        zero["offload_param"] = host
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,  # the boundaries are ours
        "steps_per_print": None,
        "bf16": {"enabled": precision is Precision.BF16},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        "zero_optimization": zero,
        # its own Adam for the CPU is compiled at first use; torch's fused AdamW gives the numbers of the GPU's
        "zero_force_ds_cpu_optimizer": False,
    }


def resident(parameters: int, precision: Precision, gpu_bytes: int | None) -> bool:
    """Whether weights are so small for the device that they stay whole between passes; `gpu_bytes`: None on CPU."""
    size = parameters * (2 if precision is Precision.BF16 else 4)
    return size <= (_RESIDENT_BYTES if gpu_bytes is None else gpu_bytes * _RESIDENT_SHARE)
