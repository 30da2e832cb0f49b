"""Faults of a rank as named ends of the run."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from simplerl_api.failures import FailureReason, TrainerFailure

_MEMORY = ("can't allocate memory", "out of memory", "not enough memory")
_TIMEOUT = ("Timed out", "timed out", "timeout", "Timeout")
_GONE = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused")


@contextmanager
def named(rank: int, work: str, timeout: float) -> Iterator[None]:
    """Runs a rank's work; memory that runs out and peers that do not answer become TrainerFailure.

    `work` names what the rank does, for the message; `timeout` is the process group's, in seconds.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as e:
        raise _out_of_memory(rank, work, e) from e
    except RuntimeError as e:
        # gloo and the CPU allocator raise plain RuntimeErrors, told apart by their text only
        text = str(e)
        if any(word in text for word in _MEMORY):
            raise _out_of_memory(rank, work, e) from e
        if any(word in text for word in _GONE):
            raise TrainerFailure(
                FailureReason.LOST_RANK, f"rank {rank} lost another rank during {work}: {_first_line(e)}"
            ) from e
        if any(word in text for word in _TIMEOUT):
            raise TrainerFailure(
                FailureReason.TIMED_OUT,
                f"rank {rank} waited {timeout:g} s for the other ranks during {work}: {_first_line(e)}",
            ) from e
        raise


def _out_of_memory(rank: int, work: str, error: BaseException) -> TrainerFailure:
    return TrainerFailure(
        FailureReason.TRAINING_OUT_OF_MEMORY,
        f"rank {rank} ran out of memory during {work}: lower training.maxTokensPerMicroBatch, or set "
        f"training.gradientCheckpointing or training.offload ({_first_line(error)})",
    )


def _first_line(error: BaseException) -> str:
    """The error's own sentence, without gloo's source position and advice."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^\[\S+\] ", "", line).split(". This is typically")[0]
