"""KL estimators, rewards of tokens and whitening."""

from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.spec.algorithm import KlEstimator
from simplerl_trainer.algorithms.kl import kl
from simplerl_trainer.algorithms.rewards import token_rewards
from simplerl_trainer.algorithms.whitening import Moments, moments, whiten


@pytest.mark.parametrize(
    ("estimator", "value"),
    [
        pytest.param(KlEstimator.K1, log(2), id="K1 is the log-ratio"),
        pytest.param(KlEstimator.K2, log(2) ** 2 / 2, id="K2 is half its square"),
        pytest.param(KlEstimator.K3, 0.5 - 1 + log(2), id="K3 is the inverse ratio - 1 + the log-ratio"),
    ],
)
def test_kl_of_a_token_twice_as_likely_as_under_the_reference(estimator: KlEstimator, value: float) -> None:
    found = kl(torch.tensor([0.5]).log(), torch.tensor([0.25]).log(), estimator)
    assert found.tolist() == pytest.approx([value])


def test_k1_and_k3_are_unbiased() -> None:
    policy, reference = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.3, 0.3, 0.4])
    true = float((policy * (policy / reference).log()).sum())
    for estimator in ("K1", "K3"):
        assert float((policy * kl(policy.log(), reference.log(), estimator)).sum()) == pytest.approx(true)


@pytest.mark.parametrize("estimator", list(KlEstimator))
def test_gradients_of_kl_agree_with_finite_differences_however_far_the_policy_is(estimator: KlEstimator) -> None:
    """Fault 14 (NeMo-RL#2506, NeMo-RL#2958): a clamp would take the pull away where it matters most."""
    policy = torch.tensor([-30.0, -8.0, -2.0, -1.9, -0.1], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([-5.0, -7.0, -2.1, -2.0, -12.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(kl(policy, reference, estimator).sum(), policy)
    assert bool((gradient != 0).all())
    near = policy[1:].detach().requires_grad_()  # e^25 is too steep for differences
    assert torch.autograd.gradcheck(lambda x: kl(x, reference[1:], estimator), (near,))


def test_another_estimator_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="the KL estimator is K4: use K1, K2 or K3"):
        kl(torch.zeros(1), torch.zeros(1), "K4")


@pytest.mark.parametrize(
    ("penalty", "rewards"),
    [
        pytest.param(None, [0, 0, 1.0, 0, -0.5], id="the score lies on each response's last token"),
        pytest.param([1.0, 2.0, 3.0, 4.0, 5.0], [-0.1, -0.2, 0.7, -0.4, -1.0], id="KL is taken from every token"),
    ],
)
def test_rewards_of_tokens(penalty: list[float] | None, rewards: list[float]) -> None:
    """Fault 7 (TRL#3750): the score lies on padding behind the last token."""
    tensor = None if penalty is None else torch.tensor(penalty)
    assert token_rewards(torch.tensor([1.0, -0.5]), [3, 2], tensor, 0.1).tolist() == pytest.approx(rewards)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=50), st.integers(0, 50))
def test_whitening_by_sums_does_not_depend_on_where_tokens_lie(numbers: list[float], cut: int) -> None:
    x = torch.tensor(numbers, dtype=torch.float64)
    parts = moments(x[:cut]) + moments(x[cut:])
    over = Moments(*parts.tolist())
    assert over.count == len(numbers)
    assert over.mean == pytest.approx(float(x.mean()), abs=1e-9)
    assert over.std == pytest.approx(float(x.std(correction=0)), abs=1e-4)
    if over.std > 1e-3:
        white = whiten(x, over)
        assert float(white.mean()) == pytest.approx(0, abs=1e-6)
        assert float(white.std(correction=0)) == pytest.approx(1, abs=1e-3)


def test_equal_advantages_are_whitened_to_zero() -> None:
    x = torch.full((5,), 3.0)
    assert whiten(x, Moments(*moments(x).tolist())).tolist() == [0.0] * 5
