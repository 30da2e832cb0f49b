"""The course of the learning rate."""

from typing import Any

import pytest

from simplerl_api.spec.training import Optimizer
from simplerl_trainer.policy.schedule import learning_rate


@pytest.mark.parametrize(
    ("schedule", "step", "rate"),
    [
        pytest.param({}, 0, 1.0, id="constant from the first step"),
        pytest.param({}, 99, 1.0, id="constant to the last step"),
        pytest.param({"warmupFraction": 0.1}, 0, 0.1, id="the warm-up's first step is not 0"),
        pytest.param({"warmupFraction": 0.1}, 4, 0.5, id="the warm-up is linear"),
        pytest.param({"warmupFraction": 0.1}, 9, 1.0, id="the warm-up ends at the full rate"),
        pytest.param({"kind": "CosineWithMin"}, 0, 1.0, id="the cosine starts at the full rate"),
        pytest.param({"kind": "CosineWithMin", "minFraction": 0.2}, 99, 0.2, id="the cosine ends at the least rate"),
        pytest.param({"kind": "CosineWithMin", "minFraction": 0.2}, 500, 0.2, id="and stays there"),
        pytest.param(
            {"kind": "CosineWithMin", "warmupFraction": 0.01, "minFraction": 0.0}, 50, 0.5, id="half-way is half"
        ),
        pytest.param({"kind": "CosineWithMin", "warmupFraction": 1.0}, 99, 1.0, id="all warm-up"),
    ],
)
def test_rate_of_a_step_of_100(schedule: dict[str, Any], step: int, rate: float) -> None:
    optimizer = Optimizer.model_validate({"learningRate": 1.0, "schedule": schedule})
    assert learning_rate(optimizer, step, 100) == pytest.approx(rate)


def test_a_learning_rate_of_0_stays_0() -> None:
    optimizer = Optimizer.model_validate({"learningRate": 0, "schedule": {"warmupFraction": 0.5}})
    assert {learning_rate(optimizer, s, 10) for s in range(10)} == {0.0}


def test_one_step_in_all() -> None:
    optimizer = Optimizer.model_validate({"learningRate": 1e-3, "schedule": {"kind": "CosineWithMin"}})
    assert learning_rate(optimizer, 0, 1) == pytest.approx(1e-3)
