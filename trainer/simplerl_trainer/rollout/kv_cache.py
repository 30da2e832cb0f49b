"""Bytes of an engine's KV cache."""

import json
from pathlib import Path

import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout.protocol import EngineSetup

MIB, GIB = 2**20, 2**30
SMALLEST, LARGEST = 64 * MIB, GIB
"""Bounds on CPU, where the cache takes memory from the pod."""
CPU_BLOCK = 128
"""Tokens of a block: vLLM's default on CPU."""
CUDA_WORKSPACE = 4 * GIB
"""Left for activations, logits and CUDA graphs of one engine."""


def budget(setup: EngineSetup) -> int:
    """Bytes for the KV cache of each of the engine's workers, from its model's config and its limits."""
    size = setup.tensor_parallel_size
    token_bytes = bytes_per_token(setup.model_folder, 2 if setup.bf16 else 4, size)
    if setup.cpu_only:
        return on_cpu(token_bytes, setup.max_num_seqs, setup.max_model_len)
    weights = sum(f.stat().st_size for f in Path(setup.model_folder).glob("*.safetensors"))
    return on_cuda(torch.cuda.get_device_properties(0).total_memory, setup.gpu_memory_share, weights // size)


def bytes_per_token(model_folder: str, element_size: int, tensor_parallel_size: int = 1) -> int:
    """Bytes that one token takes in a worker's cache of all layers; workers share out the heads.

    Raises OSError where the folder has no config.json.
    """
    config = json.loads((Path(model_folder) / "config.json").read_text(encoding="utf-8"))
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads = config.get("num_key_value_heads") or heads
    own_heads = max(kv_heads // tensor_parallel_size, 1)  # a head is there twice where there are too few
    return 2 * config["num_hidden_layers"] * own_heads * head_dim * element_size


def on_cpu(token_bytes: int, max_num_seqs: int, max_model_len: int) -> int:
    """Room for max_num_seqs sequences of full length, 64 MiB to 1 GiB; one sequence always fits."""
    blocks = -(-max_model_len // CPU_BLOCK)
    sequence = blocks * CPU_BLOCK * token_bytes
    spare = CPU_BLOCK * token_bytes  # vLLM keeps one block for itself
    return max(sequence + spare, min(max(max_num_seqs * sequence + spare, SMALLEST), LARGEST))


def on_cuda(total: int, share: float, weights: int) -> int:
    """What an engine's share of a GPU of `total` bytes leaves beside its weights and workspace.

    Raises TrainerFailure(RolloutOutOfMemory) where nothing is left.
    """
    room = int(total * share) - weights - CUDA_WORKSPACE
    if room <= 0:
        raise TrainerFailure(
            FailureReason.ROLLOUT_OUT_OF_MEMORY,
            f"an engine's share of {total * share / GIB:.1f} GiB of GPU memory does not hold its weights of "
            f"{weights / GIB:.1f} GiB and {CUDA_WORKSPACE / GIB:.0f} GiB of workspace: raise "
            "rollout.gpuMemoryUtilization or lower rollout.enginesPerGpu",
        )
    return room
