"""Generalized advantage estimation against the plain recursion."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simplerl_trainer.algorithms.gae import gae

SETTINGS = st.floats(0, 1, allow_subnormal=False)


def recursion(
    rewards: Sequence[float], values: Sequence[float], lengths: Sequence[int], gamma: float, lam: float
) -> tuple[list[float], list[float]]:
    """Equations 16 and 11 of the paper, token by token from the back of each response."""
    advantages, start = [0.0] * len(rewards), 0
    for length in lengths:
        following_value = following_advantage = 0.0
        for t in reversed(range(start, start + length)):
            delta = rewards[t] + gamma * following_value - values[t]
            following_advantage = delta + gamma * lam * following_advantage
            following_value = values[t]
            advantages[t] = following_advantage
        start += length
    return advantages, [a + v for a, v in zip(advantages, values, strict=True)]


@pytest.mark.parametrize(
    ("lengths", "gamma", "lam", "advantages"),
    [
        pytest.param([1], 0.9, 0.9, [1.0 - 0.5], id="one token: the reward less its value"),
        pytest.param([3], 1.0, 1.0, [0.5, 0.5, 0.5], id="no discount: the whole return less the value"),
        pytest.param([3], 1.0, 0.0, [0.0, 0.0, 0.5], id="lambda 0: the one-step error"),
        pytest.param([1, 2], 0.5, 1.0, [0.5, 0.0, 0.5], id="two responses do not see each other"),
    ],
)
def test_small_cases(lengths: list[int], gamma: float, lam: float, advantages: list[float]) -> None:
    """Fault 5 (ROLL#447, verl#50): what lies behind a response's end is bootstrapped from. Here nothing follows it,
    the next response neither."""
    total = sum(lengths)
    rewards, values = torch.zeros(total), torch.full((total,), 0.5)
    rewards[torch.tensor(lengths).cumsum(0) - 1] = 1.0
    found, returns = gae(rewards, values, lengths, gamma, lam)
    assert found.tolist() == pytest.approx(advantages)
    assert returns.tolist() == pytest.approx([a + 0.5 for a in advantages])


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    gamma=SETTINGS,
    lam=SETTINGS,
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_recursion_for_any_lengths(lengths: list[int], gamma: float, lam: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rewards, values = torch.randn(2, sum(lengths), generator=generator, dtype=torch.float64)
    found, returns = gae(rewards, values, lengths, gamma, lam)
    advantages, wanted = recursion(rewards.tolist(), values.tolist(), lengths, gamma, lam)
    assert found.tolist() == pytest.approx(advantages, rel=1e-9, abs=1e-9)
    assert returns.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_a_rank_without_responses_has_no_advantages() -> None:
    advantages, returns = gae(torch.zeros(0), torch.zeros(0), [], 1.0, 0.95)
    assert advantages.shape == returns.shape == (0,)
