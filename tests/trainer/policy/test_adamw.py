"""The optimizer against its paper's algorithm (https://arxiv.org/abs/1711.05101, algorithm 2) in plain Python."""

from math import sqrt

import pytest
import torch

from simplerl_api.spec.training import ActorOptimizer
from simplerl_trainer.policy.trained import adamw

GRADIENTS = [0.5, -0.2, 0.1, 0.4]
EPSILON = 1e-8


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="as it stands"),
        pytest.param({"weightDecay": 0.5}, id="with weight decay"),
        pytest.param({"betas": [0.5, 0.25]}, id="with moments that forget"),
        pytest.param({"learningRate": 0.0, "weightDecay": 0.5}, id="without a learning rate"),
    ],
)
def test_steps_are_those_of_the_paper(settings: dict[str, object]) -> None:
    optimizer = ActorOptimizer.model_validate({"learningRate": 0.125, **settings})
    weight = torch.nn.Parameter(torch.tensor([2.0, -1.0]))
    made = adamw([weight], optimizer)
    (first, second), rate = optimizer.betas, optimizer.learning_rate
    wanted, mean, square = [2.0, -1.0], 0.0, 0.0
    for step, gradient in enumerate(GRADIENTS, start=1):
        weight.grad = torch.full_like(weight, gradient)
        made.step()
        mean = first * mean + (1 - first) * gradient
        square = second * square + (1 - second) * gradient**2
        move = (mean / (1 - first**step)) / (sqrt(square / (1 - second**step)) + EPSILON)
        wanted = [w - rate * move - rate * optimizer.weight_decay * w for w in wanted]
        assert weight.tolist() == pytest.approx(wanted, rel=1e-5)
