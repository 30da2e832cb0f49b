"""Where engines live, and the sentence for a model that does not fit."""

import os
from pathlib import Path

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.memory import GIB
from simplerl_api.model_shape import ModelShape
from simplerl_trainer.evaluation.machine import Layout, Machine, layout, look, needed

SMALL = ModelShape(  # Qwen2.5-0.5B
    vocabulary=151936, hidden=896, intermediate=4864, layers=24, heads=14, key_value_heads=2, head=64, tied=True,
    biases=True,
)  # fmt: skip
LARGE = ModelShape(  # Qwen2.5-7B
    vocabulary=152064, hidden=3584, intermediate=18944, layers=28, heads=28, key_value_heads=4, head=128, biases=True
)
H200 = Machine(cpus=16, memory=128 * GIB, gpus=1, gpu_memory=140 * GIB)


@pytest.mark.parametrize(
    ("machine", "shape", "asked", "engines", "gpus"),
    [
        pytest.param(Machine(32, 256 * GIB, 2, 140 * GIB), LARGE, None, 1, [[0, 1]], id="one over both GPUs"),
        pytest.param(Machine(64, 256 * GIB, 5, 24 * GIB), LARGE, None, 2, [[0, 1], [2, 3]], id="a GPU is left over"),
        pytest.param(
            Machine(64, 256 * GIB, 4, 140 * GIB), SMALL, 4, 4, [[0, 1], [2, 3], [0, 1], [2, 3]], id="as many as asked"
        ),
        pytest.param(Machine(8, 64 * GIB), SMALL, None, 4, [[]] * 4, id="two processes each on CPUs"),
        pytest.param(Machine(1, 64 * GIB), SMALL, None, 1, [[]], id="at least one"),
    ],
)
def test_engines_over_two_gpus_each(
    machine: Machine, shape: ModelShape, asked: int | None, engines: int, gpus: list[list[int]]
) -> None:
    found = layout(machine, shape, 4096, asked, tensor_parallel=2)
    assert (found.engines, [list(found.gpus_of(e)) for e in range(engines)]) == (engines, gpus)
    assert found.share == (0.9 / found.per_gpu if machine.gpus else 1.0)


def test_more_gpus_for_an_engine_than_there_are() -> None:
    with pytest.raises(TrainerFailure, match="--tensor-parallel is 2, and this machine has 1 GPUs: lower it"):
        layout(H200, LARGE, 4096, None, tensor_parallel=2)


def test_a_model_too_large_for_one_gpu_fits_on_two() -> None:
    machine = Machine(32, 256 * GIB, 2, 14 * GIB)
    with pytest.raises(TrainerFailure, match="each GPU: raise --tensor-parallel, or use a larger machine or a smaller"):
        layout(machine, LARGE, 4096, None)
    assert layout(machine, LARGE, 4096, None, tensor_parallel=2) == Layout(1, 2, 2)


@pytest.mark.parametrize(
    ("machine", "shape", "asked", "expected"),
    [
        pytest.param(H200, SMALL, None, Layout(4, 1), id="a small model has four engines on a GPU"),
        pytest.param(H200, LARGE, None, Layout(1, 1), id="a large one has one"),
        pytest.param(H200, SMALL, 2, Layout(2, 1), id="as asked"),
        pytest.param(Machine(32, 256 * GIB, 2, 140 * GIB), LARGE, None, Layout(2, 2), id="one on each GPU"),
        pytest.param(Machine(8, 64 * GIB, 1, 16 * GIB), SMALL, None, Layout(2, 1), id="fewer where four do not fit"),
        pytest.param(Machine(2, 16 * GIB), SMALL, None, Layout(2, 0), id="one for each CPU"),
        pytest.param(Machine(64, 256 * GIB), SMALL, None, Layout(4, 0), id="at most four on CPUs"),
        pytest.param(Machine(2, 5 * GIB), SMALL, None, Layout(1, 0), id="fewer where memory is short"),
    ],
)
def test_engines_that_are_quick_and_fit(
    machine: Machine, shape: ModelShape, asked: int | None, expected: Layout
) -> None:
    assert layout(machine, shape, 4096, asked) == expected


@pytest.mark.parametrize(
    ("machine", "shape", "asked", "sentence"),
    [
        pytest.param(
            Machine(2, 16 * GIB), LARGE, None,
            "the model of 7.62 billion parameters needs at least 29.8 GiB for an engine, and 16.0 GiB are there for "
            "each of 1 in this machine's memory: use a larger machine or a smaller model",
            id="a machine that is too small",
        ),
        pytest.param(
            Machine(2, 16 * GIB), SMALL, 8,
            "the model of 0.49 billion parameters needs at least 2.9 GiB for an engine, and 2.0 GiB are there for each "
            "of 8 in this machine's memory: lower --engines 8",
            id="too many engines",
        ),
        pytest.param(
            Machine(8, 64 * GIB, 1, 16 * GIB), LARGE, None,
            "the model of 7.62 billion parameters needs at least 18.4 GiB for an engine, and 14.4 GiB are there for "
            "each of 1 on each GPU: use a larger machine or a smaller model",
            id="a GPU that is too small",
        ),
    ],
)  # fmt: skip
def test_a_model_that_does_not_fit_is_named(
    machine: Machine, shape: ModelShape, asked: int | None, sentence: str
) -> None:
    with pytest.raises(TrainerFailure) as caught:
        layout(machine, shape, 4096, asked)
    assert caught.value.reason is FailureReason.INVALID_INPUT
    assert caught.value.message == sentence


def test_what_an_engine_needs_grows_with_its_longest_sample() -> None:
    token = 2 * 24 * 2 * 64 * 2
    assert needed(SMALL, 5000, on_gpu=True) - needed(SMALL, 4000, on_gpu=True) == 1000 * token
    assert needed(SMALL, 5000, on_gpu=False) - needed(SMALL, 4000, on_gpu=False) == 2 * 1000 * token


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        pytest.param(None, [100, 200], id="all"),
        pytest.param("1", [200], id="one of them"),
        pytest.param("", [], id="hidden"),
        pytest.param("-1", [], id="hidden by -1"),
    ],
)
def test_the_gpus_are_those_that_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, expected: list[int]
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\ncase "$*" in *--id=1*) echo 200;; *) echo 100; echo 200;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = look()
    assert (found.gpus, found.gpu_memory) == (len(expected), min(expected, default=0) * 2**20)


def test_this_machine_has_something() -> None:
    found = look()
    assert found.cpus >= 1
    assert found.memory > 0
