"""What vLLM is told on CUDA, beside what an engine's setup says."""

from collections.abc import Sequence
from typing import Any

_STEPS = 16
"""CUDA graphs between none and all sequences: each takes time and memory to capture, and pads smaller batches."""


def arguments(max_num_seqs: int) -> dict[str, Any]:
    """Arguments of vLLM's EngineArgs for an engine that shares its GPU with a rank and other engines."""
    return {
        "enable_sleep_mode": True,
        # Only looked at when an engine starts, as the share of the GPU that must be free then: the KV cache has its
        # own budget, so that ranks and engines can start together.
        "gpu_memory_utilization": 0.01,
        "compilation_config": {"cudagraph_capture_sizes": list(capture_sizes(max_num_seqs))},
    }


def capture_sizes(max_num_seqs: int) -> Sequence[int]:
    """Batch sizes that get a CUDA graph, up to all sequences that an engine decodes at once: powers of two, then even
    steps, so that a batch is padded by at most a sixteenth of the largest."""
    step = max(1, -(-max_num_seqs // _STEPS))
    small = {2**n for n in range(step.bit_length()) if 2**n < step}
    return sorted(s for s in {*small, *range(step, max_num_seqs, step), max_num_seqs} if s <= max_num_seqs)


def check_runner(llm: Any) -> None:
    """Raises RuntimeError where vLLM would not use its Model Runner V2, which draws seeded samples without a generator
    a request."""
    if not llm.vllm_config.use_v2_model_runner:
        raise RuntimeError("vLLM does not use Model Runner V2 for this model: use one of vLLM 0.26 to 0.32 with Triton")
