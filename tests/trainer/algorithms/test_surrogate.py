"""The clipped surrogate against a reference in plain Python, and its gradient against finite differences."""

from math import exp

import pytest
import torch

from simplerl_trainer.algorithms.surrogate import surrogate


def reference(
    new: list[float], old: list[float], advantages: list[float], low: float, high: float, dual: float | None
) -> list[float]:
    losses = []
    for n, o, a in zip(new, old, advantages, strict=True):
        ratio = exp(n - o)
        objective = min(ratio * a, min(max(ratio, 1 - low), 1 + high) * a)
        if dual is not None and a < 0:
            objective = max(objective, dual * a)
        losses.append(-objective)
    return losses


@pytest.mark.parametrize(
    ("ratio", "advantage", "dual", "loss", "clipped"),
    [
        pytest.param(1.0, 2.0, None, -2.0, 0, id="at ratio 1 the loss is minus the advantage"),
        pytest.param(1.5, 1.0, None, -1.3, 1, id="a gain above 1 + clipHigh is not rewarded"),
        pytest.param(0.5, -1.0, None, 0.8, 1, id="a gain below 1 - clipLow is not rewarded"),
        pytest.param(1.5, -1.0, None, 1.5, 0, id="a loss above 1 + clipHigh is felt in full"),
        pytest.param(0.5, 1.0, None, -0.5, 0, id="a loss below 1 - clipLow is felt in full"),
        pytest.param(5.0, -1.0, 3.0, 3.0, 1, id="with a dual clip it is felt up to that many times the advantage"),
        pytest.param(2.0, -1.0, 3.0, 2.0, 0, id="the dual clip leaves smaller ratios alone"),
        pytest.param(5.0, 1.0, 3.0, -1.3, 1, id="and positive advantages"),
        pytest.param(1.0, 0.0, 3.0, 0.0, 0, id="no advantage, no loss"),
    ],
)
def test_one_token(ratio: float, advantage: float, dual: float | None, loss: float, clipped: int) -> None:
    found = surrogate(torch.tensor([ratio]).log(), torch.zeros(1), torch.tensor([advantage]), 0.2, 0.3, dual)
    assert found.loss.tolist() == pytest.approx([loss])
    assert int(found.clipped) == clipped
    assert float(found.ratio_max) == pytest.approx(ratio)
    assert float(found.ratio_deviation) == pytest.approx(abs(ratio - 1))


@pytest.mark.parametrize("dual", [None, 1.2], ids=["one clip", "dual clip"])
def test_it_agrees_with_the_reference_and_its_gradient_with_finite_differences(dual: float | None) -> None:
    generator = torch.Generator().manual_seed(5)
    new, old, advantages = torch.randn(3, 100, generator=generator, dtype=torch.float64) * 0.5
    found = surrogate(new, old, advantages, 0.2, 0.28, dual)
    assert found.loss.tolist() == pytest.approx(
        reference(new.tolist(), old.tolist(), advantages.tolist(), 0.2, 0.28, dual)
    )
    assert 0 < int(found.clipped) < 100
    new.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: surrogate(x, old, advantages, 0.2, 0.28, dual).loss, (new,))


def test_clipped_tokens_give_no_gradient() -> None:
    new = torch.tensor([1.5, 0.5, 5.0, 1.1]).log().requires_grad_()
    found = surrogate(new, torch.zeros(4), torch.tensor([1.0, -1.0, -1.0, 1.0]), 0.2, 0.2, 3.0)
    found.loss.sum().backward()
    assert new.grad is not None
    assert new.grad.tolist() == pytest.approx([0, 0, 0, -1.1])
    assert int(found.clipped) == 3


def test_no_tokens_weigh_nothing_but_keep_the_graph() -> None:
    empty = torch.zeros(0, requires_grad=True)
    found = surrogate(empty, torch.zeros(0), torch.zeros(0), 0.2, 0.2)
    found.loss.sum().backward()
    assert found.loss.sum().item() == float(found.ratio_max) == float(found.divergence) == 0.0
    assert empty.grad is not None
