"""Liger's fused kernels (https://github.com/linkedin/Liger-Kernel) in place of transformers' layers, on CUDA."""

import torch


def fuse(family: str, dtype: torch.dtype, device: torch.device) -> None:
    """Makes the family's models that are loaded from now on use fused rotary embeddings, RMSNorm and SwiGLU.

    `family` is config.json's model_type. Only in bfloat16 on CUDA: float32 is there to be compared with.
    """
    if device.type != "cuda" or dtype != torch.bfloat16:
        return
    from liger_kernel.transformers import monkey_patch

    apply = {
        "llama": monkey_patch.apply_liger_kernel_to_llama,
        "qwen2": monkey_patch.apply_liger_kernel_to_qwen2,
        "qwen3": monkey_patch.apply_liger_kernel_to_qwen3,
    }[family]
    # the losses are ours, from hidden states
    apply(rope=True, rms_norm=True, swiglu=True, cross_entropy=False, fused_linear_cross_entropy=False)
