"""What the papers say, in plain loops over samples and tokens: an independent reference for the algorithms.

PPO            https://arxiv.org/abs/1707.06347, GAE https://arxiv.org/abs/1506.02438
GRPO, Dr.GRPO  https://arxiv.org/abs/2402.03300, https://arxiv.org/abs/2503.20783
RLOO           https://arxiv.org/abs/2402.14740
REINFORCE++    https://arxiv.org/abs/2501.03262
dual clip      https://arxiv.org/abs/1912.09729
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, sqrt

from simplerl_trainer.policy.protocol import Trajectory

COEFFICIENT = 0.3
"""beta, of the KL term."""
Advantages = dict[int, list[float]]
"""Of each token, by sample id."""


@dataclass(frozen=True)
class Told:
    """What the models say of each sample's tokens, by sample id."""

    policy: list[list[float]]
    reference: list[list[float]]
    values: list[list[float]]


def k1(p: float, r: float) -> float:
    return p - r


def k3(p: float, r: float) -> float:
    return exp(r - p) - 1 - (r - p)


def sequence_rewards(
    trajectories: Sequence[Trajectory], told: Told, kl: Callable[[float, float], float]
) -> dict[int, float]:
    """The score less beta times the sum of KL."""
    return {
        t.sample_id: t.score
        - COEFFICIENT
        * sum(kl(p, r) for p, r in zip(told.policy[t.sample_id], told.reference[t.sample_id], strict=True))
        for t in trajectories
    }


def token_rewards(t: Trajectory, score: float, told: Told) -> list[float]:
    """-beta KL of each token, and the score on the last."""
    pairs = zip(told.policy[t.sample_id], told.reference[t.sample_id], strict=True)
    rewards = [-COEFFICIENT * k1(p, r) for p, r in pairs]
    rewards[-1] += score
    return rewards


def white(by_id: Advantages) -> Advantages:
    every = [x for row in by_id.values() for x in row]
    mean = sum(every) / len(every)
    std = sqrt(sum((x - mean) ** 2 for x in every) / len(every))
    return {i: [(x - mean) / std for x in row] for i, row in by_id.items()}


def groups_of(trajectories: Sequence[Trajectory], rewards: dict[int, float]) -> dict[int, list[float]]:
    return {
        t.sample_id: [rewards[o.sample_id] for o in trajectories if o.group == t.group and o is not t]
        for t in trajectories
    }


def ppo(trajectories: Sequence[Trajectory], told: Told, lam: float = 0.95, gamma: float = 1.0) -> Advantages:
    out = {}
    for t in trajectories:
        rewards, values = token_rewards(t, t.score, told), told.values[t.sample_id] + [0.0]
        deltas = [r + gamma * values[i + 1] - values[i] for i, r in enumerate(rewards)]
        out[t.sample_id] = [
            sum((gamma * lam) ** k * delta for k, delta in enumerate(deltas[start:])) for start in range(len(deltas))
        ]
    return out


def reinforce(trajectories: Sequence[Trajectory], told: Told, gamma: float, baseline: bool = False) -> Advantages:
    scores = {t.sample_id: t.score for t in trajectories}
    others = groups_of(trajectories, scores)
    out = {}
    for t in trajectories:
        mean = (sum(others[t.sample_id]) + t.score) / (len(others[t.sample_id]) + 1)
        rewards = token_rewards(t, t.score - (mean if baseline else 0.0), told)
        out[t.sample_id] = [sum(gamma**k * r for k, r in enumerate(rewards[start:])) for start in range(len(rewards))]
    return out


def grpo(trajectories: Sequence[Trajectory], rewards: dict[int, float], by_std: bool = True) -> Advantages:
    out = {}
    for t in trajectories:
        group = [*groups_of(trajectories, rewards)[t.sample_id], rewards[t.sample_id]]
        mean = sum(group) / len(group)
        std = sqrt(sum((r - mean) ** 2 for r in group) / (len(group) - 1))
        advantage = (rewards[t.sample_id] - mean) / (std + 1e-6 if by_std else 1.0)
        out[t.sample_id] = [advantage] * len(t.response_ids)
    return out


def rloo(trajectories: Sequence[Trajectory], rewards: dict[int, float]) -> Advantages:
    out = {}
    for t in trajectories:
        others = groups_of(trajectories, rewards)[t.sample_id]
        out[t.sample_id] = [rewards[t.sample_id] - sum(others) / len(others)] * len(t.response_ids)
    return out


def scores_of(trajectories: Sequence[Trajectory]) -> dict[int, float]:
    return {t.sample_id: t.score for t in trajectories}


def loss_terms(
    new: Sequence[float],
    old: Sequence[float],
    advantages: Sequence[float],
    low: float,
    high: float,
    dual: float | None,
) -> list[float]:
    """Minus the clipped surrogate of each token of a response."""
    terms = []
    for n, o, a in zip(new, old, advantages, strict=True):
        ratio = exp(n - o)
        objective = min(ratio * a, min(max(ratio, 1 - low), 1 + high) * a)
        if dual is not None and a < 0:
            objective = max(objective, dual * a)
        terms.append(-objective)
    return terms


def aggregate(terms: dict[int, list[float]], aggregation: str, longest: int) -> float:
    """One loss of the terms of each token, by sample id."""
    if aggregation == "Token":
        return sum(sum(row) for row in terms.values()) / sum(len(row) for row in terms.values())
    if aggregation == "Sequence":
        return sum(sum(row) / len(row) for row in terms.values()) / len(terms)
    return sum(sum(row) for row in terms.values()) / (len(terms) * longest)
