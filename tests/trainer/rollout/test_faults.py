"""A lack of memory has a reason of its own; other errors stay what they are."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout import worker_faults
from simplerl_trainer.rollout.faults import named
from simplerl_trainer.rollout.protocol import EngineSetup
from simplerl_trainer.rollout.vllm_engine import VllmEngine


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


def test_what_a_worker_says_while_it_starts_is_why_its_engine_does_not() -> None:
    logger = logging.getLogger("vllm.v1.executor.multiproc_executor")

    def starts() -> None:
        with worker_faults.named():
            worker_faults.keep()  # as in a worker, which has this process's environment
            try:
                no_gpu_memory()
            except torch.OutOfMemoryError:
                logger.exception("WorkerProc failed to start.")
            raise Exception("WorkerProc initialization failed")

    with pytest.raises(RuntimeError) as raised:
        starts()
    assert str(raised.value).startswith(
        "a worker of the engine did not start: OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    failure = named(raised.value, "loading")
    assert isinstance(failure, TrainerFailure)
    assert failure.reason is FailureReason.ROLLOUT_OUT_OF_MEMORY
    logger.handlers.clear()


def test_an_engine_that_says_itself_why_it_does_not_start_is_heard() -> None:
    with pytest.raises(ValueError, match="too long"), worker_faults.named():
        raise ValueError("too long")


@pytest.mark.long
def test_an_engine_over_two_slots_tells_what_ended_its_workers(qwen2: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(qwen2(True), folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    engine = VllmEngine()
    before = set(Path("/dev/shm").glob("vllm_dist_*"))
    with pytest.raises(RuntimeError, match=r"a worker of the engine did not start: SafetensorError"):
        engine.start(EngineSetup(str(folder), False, True, 64, 16, 512, 1.0, (1,), 0, tensor_parallel_size=2))
    engine.stop()
    assert set(Path("/dev/shm").glob("vllm_dist_*")) <= before
