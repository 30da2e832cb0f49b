"""The clipped losses against a reference in plain Python, and their gradients against finite differences."""

from math import exp

import pytest
import torch

from simplerl_trainer.algorithms.ppo import policy_loss, value_loss


def reference_policy_loss(
    new: list[float], old: list[float], advantages: list[float], low: float, high: float
) -> float:
    total = 0.0
    for n, o, a in zip(new, old, advantages, strict=True):
        ratio = exp(n - o)
        total -= min(ratio * a, min(max(ratio, 1 - low), 1 + high) * a)
    return total


def reference_value_loss(new: list[float], old: list[float], returns: list[float], clip: float) -> float:
    total = 0.0
    for v, o, r in zip(new, old, returns, strict=True):
        bounded = o + min(max(v - o, -clip), clip)
        total += 0.5 * max((v - r) ** 2, (bounded - r) ** 2)
    return total


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        pytest.param(1.0, 2.0, -2.0, 0, id="at ratio 1 the loss is minus the advantage"),
        pytest.param(1.5, 1.0, -1.3, 1, id="a gain above 1 + clipHigh is not rewarded"),
        pytest.param(0.5, -1.0, 0.8, 1, id="a gain below 1 - clipLow is not rewarded"),
        pytest.param(1.5, -1.0, 1.5, 0, id="a loss above 1 + clipHigh is felt in full"),
        pytest.param(0.5, 1.0, -0.5, 0, id="a loss below 1 - clipLow is felt in full"),
    ],
)
def test_policy_loss_of_one_token(ratio: float, advantage: float, loss: float, clipped: int) -> None:
    found = policy_loss(torch.tensor([ratio]).log(), torch.zeros(1), torch.tensor([advantage]), 0.2, 0.3)
    assert float(found.loss) == pytest.approx(loss)
    assert int(found.clipped) == clipped
    assert float(found.ratio_max) == pytest.approx(ratio)
    assert float(found.ratio_deviation) == pytest.approx(abs(ratio - 1))


def test_losses_agree_with_the_reference() -> None:
    generator = torch.Generator().manual_seed(5)
    new, old, third = torch.randn(3, 200, generator=generator, dtype=torch.float64) * 0.5
    found = policy_loss(new, old, third, 0.2, 0.28)
    assert float(found.loss) == pytest.approx(
        reference_policy_loss(new.tolist(), old.tolist(), third.tolist(), 0.2, 0.28)
    )
    assert 0 < int(found.clipped) < 200
    value = value_loss(new, old, third, 0.2)
    assert float(value) == pytest.approx(reference_value_loss(new.tolist(), old.tolist(), third.tolist(), 0.2))


def test_gradients_agree_with_finite_differences() -> None:
    generator = torch.Generator().manual_seed(6)
    new, old, third = torch.randn(3, 30, generator=generator, dtype=torch.float64) * 0.5
    new.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: policy_loss(x, old, third, 0.2, 0.28).loss, (new,))
    assert torch.autograd.gradcheck(lambda x: value_loss(x, old, third, 0.2), (new,))


def test_no_tokens_weigh_nothing_but_keep_the_graph() -> None:
    empty = torch.zeros(0, requires_grad=True)
    found = policy_loss(empty, torch.zeros(0), torch.zeros(0), 0.2, 0.2)
    (found.loss + value_loss(empty, torch.zeros(0), torch.zeros(0), 0.2)).backward()
    assert found.loss.item() == float(found.ratio_max) == float(found.divergence) == 0.0
    assert empty.grad is not None
