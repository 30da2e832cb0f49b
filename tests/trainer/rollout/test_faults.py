"""A lack of memory has a reason of its own; other errors stay what they are."""

from collections.abc import Callable

import pytest
import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout.faults import named


def too_large() -> None:
    torch.empty(2**50)


def no_memory() -> None:
    raise MemoryError


def no_gpu_memory() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines")


def no_room_for_a_sequence() -> None:
    raise ValueError("To serve at least one request, (8.0 GiB KV cache is needed, which is larger than 1.0 GiB).")


@pytest.mark.parametrize(
    ("fails", "sentence"),
    [
        pytest.param(too_large, "while loading: .*DefaultCPUAllocator", id="torch on CPU"),
        pytest.param(no_memory, "while loading: MemoryError", id="Python"),
        pytest.param(
            no_gpu_memory, r"while loading: CUDA out of memory. Tried to allocate 2.00 GiB.$", id="torch on CUDA"
        ),
        pytest.param(no_room_for_a_sequence, "while loading: To serve at least one request", id="vLLM's KV cache"),
    ],
)
def test_out_of_memory_in(fails: Callable[[], None], sentence: str) -> None:
    with pytest.raises((RuntimeError, MemoryError, ValueError)) as raised:
        fails()
    with pytest.raises(TrainerFailure, match=sentence) as failure:
        raise named(raised.value, "loading")
    assert failure.value.reason is FailureReason.ROLLOUT_OUT_OF_MEMORY


@pytest.mark.parametrize(
    "error", [ValueError("no such layer"), TrainerFailure(FailureReason.WEIGHT_SYNC_FAILED, "DefaultCPUAllocator")]
)
def test_another_error_stays_what_it_is(error: Exception) -> None:
    assert named(error, "loading") is error
