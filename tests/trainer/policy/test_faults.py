"""Faults of a rank as named ends of the run."""

import pytest
import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.policy.faults import named


@pytest.mark.parametrize(
    ("error", "reason", "sentence"),
    [
        pytest.param(
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
            FailureReason.TRAINING_OUT_OF_MEMORY,
            r"rank 3 ran out of memory during annotation: lower training\.maxTokensPerMicroBatch",
            id="the GPU's memory",
        ),
        pytest.param(
            RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
            FailureReason.TRAINING_OUT_OF_MEMORY,
            "rank 3 ran out of memory",
            id="the machine's memory",
        ),
        pytest.param(MemoryError(), FailureReason.TRAINING_OUT_OF_MEMORY, "MemoryError", id="Python's memory"),
        pytest.param(
            RuntimeError("[/a/pair.cc:5] Connection closed by peer [10.0.0.1]:5. This is typically caused by a crash."),
            FailureReason.LOST_RANK,
            r"rank 3 lost another rank during annotation: Connection closed by peer \[10\.0\.0\.1\]:5$",
            id="a peer that is gone",
        ),
        pytest.param(
            RuntimeError("[/a/b.cc:78] Timed out waiting 9000ms for recv operation to complete"),
            FailureReason.TIMED_OUT,
            "rank 3 waited 9 s for the other ranks during annotation: Timed out waiting",
            id="a peer that does not answer",
        ),
    ],
)
def test_a_fault_is_named(error: BaseException, reason: FailureReason, sentence: str) -> None:
    with pytest.raises(TrainerFailure, match=sentence) as caught, named(3, "annotation", 9.0):
        raise error
    assert caught.value.reason is reason


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"), named(0, "annotation", 9.0):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
