"""An engine's errors as the driver should see them: a lack of memory has a reason of its own."""

import torch

from simplerl_api.failures import FailureReason, TrainerFailure

_SIGNS = (
    "CUDA out of memory",
    "DefaultCPUAllocator",  # torch on CPU raises a RuntimeError
    "KV cache is needed",  # vLLM: one sequence of full length does not fit
    "requested memory for kv",  # vLLM on CPU: the KV cache does not fit
)


def named(error: BaseException, doing: str) -> BaseException:
    """The error itself, or TrainerFailure(RolloutOutOfMemory) where memory ran out."""
    text = str(error).strip()
    memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or any(sign in text for sign in _SIGNS)
    if not memory or isinstance(error, TrainerFailure):
        return error
    first_line = text.splitlines()[0] if text else type(error).__name__
    return TrainerFailure(
        FailureReason.ROLLOUT_OUT_OF_MEMORY, f"the engine ran out of memory while {doing}: {first_line}"
    )
