"""Where Liger's kernels stay away; tests/gpu has them at work."""

import pytest
import torch
from transformers.models.qwen2 import modeling_qwen2

from simplerl_trainer.policy.liger import fuse


@pytest.mark.parametrize(
    ("dtype", "device"),
    [
        pytest.param(torch.bfloat16, "cpu", id="on CPU"),
        pytest.param(torch.float32, "cuda", id="in float32"),
    ],
)
def test_transformers_own_layers_stay(dtype: torch.dtype, device: str) -> None:
    before = modeling_qwen2.Qwen2RMSNorm, modeling_qwen2.Qwen2MLP, modeling_qwen2.apply_rotary_pos_emb
    fuse("qwen2", dtype, torch.device(device))
    assert (modeling_qwen2.Qwen2RMSNorm, modeling_qwen2.Qwen2MLP, modeling_qwen2.apply_rotary_pos_emb) == before
