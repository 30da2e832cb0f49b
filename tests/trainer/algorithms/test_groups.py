"""Advantages by groups against the papers' formulas in plain Python, for any groups in any order."""

from collections.abc import Callable, Sequence
from math import sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.algorithms import groups as group
from simplerl_trainer.algorithms import grpo, reinforce_plus_plus, rloo

Formula = Callable[[list[float], int], float]
"""The advantage of one member of a group from the group's rewards."""


def mean(x: Sequence[float]) -> float:
    return sum(x) / len(x)


def grpo_formula(rewards: list[float], i: int) -> float:
    if len(rewards) == 1:
        return 0.0
    deviation = sqrt(sum((r - mean(rewards)) ** 2 for r in rewards) / (len(rewards) - 1))
    return (rewards[i] - mean(rewards)) / (deviation + 1e-6)


def dr_grpo_formula(rewards: list[float], i: int) -> float:
    return rewards[i] - mean(rewards)


def rloo_formula(rewards: list[float], i: int) -> float:
    others = rewards[:i] + rewards[i + 1 :]
    return rewards[i] - mean(others) if others else 0.0


FORMULAS: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], Formula]] = {
    "GRPO": (lambda r, g: grpo.advantages(r, g, True), grpo_formula),
    "Dr.GRPO": (lambda r, g: grpo.advantages(r, g, False), dr_grpo_formula),
    "RLOO": (rloo.advantages, rloo_formula),
    "REINFORCE++-baseline": (reinforce_plus_plus.less_baseline, dr_grpo_formula),
}
ALGORITHM = pytest.mark.parametrize(("ours", "formula"), FORMULAS.values(), ids=FORMULAS.keys())


@ALGORITHM
@given(
    members=st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from([-1.0, -0.5, 0.0, 0.1, 1.0])), min_size=1, max_size=40
    )
)
def test_every_sample_is_judged_by_its_own_group(
    ours: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], formula: Formula, members: list[tuple[int, float]]
) -> None:
    rewards = torch.tensor([r for _, r in members], dtype=torch.float64)
    found = ours(rewards, torch.tensor([g for g, _ in members])).tolist()
    for at, (number, _) in enumerate(members):
        places = [i for i, (g, _) in enumerate(members) if g == number]
        wanted = formula([members[i][1] for i in places], places.index(at))
        assert found[at] == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@ALGORITHM
@pytest.mark.parametrize(
    "reward", [pytest.param(0.1, id="rewards that rounding moves"), pytest.param(1e6, id="great ones")]
)
def test_a_group_without_variance_gives_exactly_0(
    ours: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], formula: Formula, reward: float
) -> None:
    """Fault 9 (OpenRLHF#1250): a group whose rewards are equal gives 0, and a group of one does not give nan."""
    groups = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2])
    assert ours(torch.full((11,), reward, dtype=torch.float64), groups).tolist() == [0.0] * 11


def test_groups_may_bear_any_numbers() -> None:
    x, groups = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64), torch.tensor([10**6, -3, 10**6])
    assert group.means(x, groups).tolist() == [3.0, 2.0, 3.0]
    assert group.sizes(groups).tolist() == [2.0, 1.0, 2.0]
    assert group.deviations(x, groups).tolist() == pytest.approx([sqrt(8), 0.0, sqrt(8)])


@pytest.mark.parametrize(
    ("gamma", "returns"),
    [
        pytest.param(1.0, [2.0, 3.0, 2.5, -1.0], id="all rewards that follow"),
        pytest.param(0.5, [0.125, 2.25, 2.5, -1.0], id="discounted by their distance"),
    ],
)
def test_reinforce_plus_plus_sums_the_rewards_that_follow_in_the_same_response(
    gamma: float, returns: list[float]
) -> None:
    rewards = torch.tensor([-1.0, 0.5, 2.5, -1.0]) if gamma == 1 else torch.tensor([-1.0, 1.0, 2.5, -1.0])
    assert reinforce_plus_plus.returns(rewards, [3, 1], gamma).tolist() == pytest.approx(returns)
