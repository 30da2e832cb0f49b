"""The critic's loss against a reference in plain Python, and its gradient against finite differences."""

import pytest
import torch

from simplerl_trainer.algorithms.ppo import value_loss


def reference(new: list[float], old: list[float], returns: list[float], clip: float) -> list[float]:
    losses = []
    for v, o, r in zip(new, old, returns, strict=True):
        bounded = o + min(max(v - o, -clip), clip)
        losses.append(0.5 * max((v - r) ** 2, (bounded - r) ** 2))
    return losses


@pytest.mark.parametrize(
    ("value", "old", "returned", "loss"),
    [
        pytest.param(1.0, 1.0, 3.0, 2.0, id="half the square of the error"),
        pytest.param(2.0, 1.0, 3.0, 0.5 * 1.8**2, id="a value that moved too far is judged where it was clipped"),
        pytest.param(1.0, 2.0, 3.0, 2.0, id="a value that moved away is judged where it is"),
    ],
)
def test_value_loss_of_one_token(value: float, old: float, returned: float, loss: float) -> None:
    found = value_loss(torch.tensor([value]), torch.tensor([old]), torch.tensor([returned]), 0.2)
    assert found.tolist() == pytest.approx([loss])


def test_it_agrees_with_the_reference_and_its_gradient_with_finite_differences() -> None:
    generator = torch.Generator().manual_seed(5)
    new, old, returns = torch.randn(3, 100, generator=generator, dtype=torch.float64) * 0.5
    assert value_loss(new, old, returns, 0.2).tolist() == pytest.approx(
        reference(new.tolist(), old.tolist(), returns.tolist(), 0.2)
    )
    new.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: value_loss(x, old, returns, 0.2), (new,))
