"""Every algorithm learns a small task by its gradients alone; tests/trainer/test_learning.py has whole runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.trainer.policy import processes
from tests.trainer.policy.learning_process import CASES


@pytest.fixture(scope="module")
def learned(model_folder: Callable[[str], Path]) -> dict[str, tuple[float, float]]:
    """Accuracy before and after 30 steps, by case."""
    folder = model_folder("qwen2 tied").parent
    processes.run([processes.start("learning_process.py", processes.free_port(), folder)])
    return {name: tuple(pair) for name, pair in json.loads((folder / "learned.json").read_text()).items()}


@pytest.mark.parametrize("name", CASES)
def test_accuracy_climbs_from_a_half_to_over_0_85(learned: dict[str, tuple[float, float]], name: str) -> None:
    first, last = learned[name]
    assert first < 0.6
    assert last > 0.85


@pytest.mark.parametrize("name", ["ppo", "grpo"])
def test_without_a_learning_rate_it_does_not_climb(learned: dict[str, tuple[float, float]], name: str) -> None:
    first, last = learned[f"{name}, learning rate 0"]
    assert last < first + 0.1
