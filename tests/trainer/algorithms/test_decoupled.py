"""The weights of decoupled PPO against the paper's formula in plain Python."""

from math import exp

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.algorithms.decoupled import CAP, behavior_weights
from simplerl_trainer.algorithms.surrogate import surrogate

LOGPROB = st.floats(-8.0, 0.0)
TOKEN = st.tuples(LOGPROB, LOGPROB, LOGPROB, st.floats(-3.0, 3.0))


def decoupled_loss(
    tokens: list[tuple[float, float, float, float]], cap: float, low: float, high: float
) -> tuple[float, list[float]]:
    """AReaL's objective with truncated weights, token by token, and its gradient by each new log-probability."""
    loss, gradient = 0.0, []
    for new, proximal, behavior, advantage in tokens:
        weight = min(cap, exp(proximal) / exp(behavior))
        ratio = exp(new) / exp(proximal)
        bounded = min(max(ratio, 1 - low), 1 + high)
        loss -= weight * min(ratio * advantage, bounded * advantage)
        gradient.append(-weight * ratio * advantage if ratio * advantage <= bounded * advantage else 0.0)
    return loss, gradient


@given(st.lists(TOKEN, min_size=1, max_size=8))
def test_loss_and_gradient_are_the_papers(tokens: list[tuple[float, float, float, float]]) -> None:
    new, proximal, behavior, advantages = (torch.tensor(x, dtype=torch.float64) for x in zip(*tokens, strict=True))
    new.requires_grad_()
    weighed = behavior_weights(proximal, behavior) * advantages
    loss = surrogate(new, proximal, weighed, 0.2, 0.3).loss.sum()
    (gradient,) = torch.autograd.grad(loss, new)
    expected, by_token = decoupled_loss(tokens, CAP, 0.2, 0.3)
    torch.testing.assert_close(loss.detach(), torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(gradient, torch.tensor(by_token, dtype=torch.float64))


@pytest.mark.parametrize(
    ("proximal", "behavior", "weight"),
    [
        pytest.param(-1.0, -1.0, 1.0, id="the same policy leaves PPO as it is"),
        pytest.param(-2.0, -1.0, exp(-1), id="what has become unlikely counts less"),
        pytest.param(-1.0, -1.5, exp(0.5), id="what has become likely counts more"),
        pytest.param(-1.0, -9.0, CAP, id="up to the cap"),
        pytest.param(0.0, float("-inf"), CAP, id="however unlikely it was"),
    ],
)
def test_weight(proximal: float, behavior: float, weight: float) -> None:
    found = behavior_weights(torch.tensor([proximal]), torch.tensor([behavior]))
    torch.testing.assert_close(found, torch.tensor([weight]))


def test_weights_have_no_gradient() -> None:
    proximal = torch.tensor([-1.0], requires_grad=True)
    assert not behavior_weights(proximal, torch.tensor([-1.2])).requires_grad
