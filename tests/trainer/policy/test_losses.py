"""The policy's gradient against finite differences of its paper's objective in plain Python, in float64."""

from collections.abc import Iterator
from math import exp, log
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.trainer.policy import papers
from tests.trainer.policy.papers import COEFFICIENT, Told

from simplerl_api.spec.algorithm import Algorithm
from simplerl_trainer.policy.annotate import annotate
from simplerl_trainer.policy.optimize import Totals, actor_gradients, critic_gradients
from simplerl_trainer.policy.packing import Pack, make_pack
from simplerl_trainer.policy.protocol import Trajectory

WORDS = 4
LONGEST = 6
TRAJECTORIES = [
    Trajectory(0, (1,), (0, 3, 2), 1.0, None, group=0),
    Trajectory(1, (1,), (2,), 0.0, None, group=0),
    Trajectory(2, (1,), (1, 1), 0.0, None, group=0),
    Trajectory(3, (2,), (3, 0, 1, 2), -0.5, None, group=1),
    Trajectory(4, (2,), (0, 2), 1.0, None, group=1),
]
PACKS = [[3, 0], [1, 4, 2]]
TOKENS = sum(len(t.response_ids) for t in TRAJECTORIES)
Rows = dict[int, list[list[float]]]
"""By sample id, a logit of each word at each token of the response."""


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """A process group of one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def random_rows(seed: int) -> torch.Tensor:
    return torch.randn(TOKENS, WORDS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.6


class Table:
    """A policy that is a table of logits, or a critic that is a column of it: what the losses see of a model."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits.clone().requires_grad_()

    def rows(self, pack: Pack) -> torch.Tensor:
        starts, at = {}, 0
        for t in TRAJECTORIES:
            starts[t.sample_id] = at
            at += len(t.response_ids)
        places = [
            starts[i] + k
            for i, length in zip(pack.sample_ids, pack.response_lengths, strict=True)
            for k in range(length)
        ]
        return self.logits[torch.tensor(places)]

    def __call__(self, pack: Pack, temperature: float, entropies: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        every = self.rows(pack).log_softmax(-1)
        return every.gather(1, pack.targets[:, None])[:, 0], -(every.exp() * every).sum(-1)

    def backward(self, loss: torch.Tensor, last: bool) -> None:
        loss.backward()


class Values(Table):
    def __call__(self, pack: Pack, *_: Any) -> torch.Tensor:
        return self.rows(pack)[:, 0]


def plain(logits: torch.Tensor) -> tuple[list[list[float]], list[list[float]]]:
    """Log-probabilities of the responses' tokens and entropies, by sample, without tensors."""
    logprobs, entropies, at = [], [], 0
    table = logits.tolist()
    for t in TRAJECTORIES:
        logprobs.append([])
        entropies.append([])
        for token in t.response_ids:
            row = table[at]
            total = log(sum(exp(x) for x in row))
            logprobs[-1].append(row[token] - total)
            entropies[-1].append(-sum(exp(x - total) * (x - total) for x in row))
            at += 1
    return logprobs, entropies


OLD, NEW, REFERENCE, VALUES, NEW_VALUES = (random_rows(seed) for seed in range(5))
TOLD = Told(plain(OLD)[0], plain(REFERENCE)[0], [])
COLUMN = VALUES[:, 0].split([len(t.response_ids) for t in TRAJECTORIES])
TOLD = Told(TOLD.policy, TOLD.reference, [column.tolist() for column in COLUMN])


def k2(p: float, r: float) -> float:
    return (p - r) ** 2 / 2


CASES: dict[str, tuple[dict[str, Any], papers.Advantages, Any]] = {
    "PPO": ({}, papers.white(papers.ppo(TRAJECTORIES, TOLD)), None),
    "PPO with an entropy bonus, a dual clip and KL in the loss": (
        {
            "ppo": {"whiten": False, "clipHigh": 0.1},
            "loss": {"entropyCoefficient": 0.2, "dualClip": 1.1},
            "kl": {"placement": "Loss", "estimator": "K2"},
        },
        papers.ppo(TRAJECTORIES, Told(TOLD.policy, TOLD.policy, TOLD.values)),
        k2,
    ),
    "GRPO over tokens": ({"grpo": {}}, papers.grpo(TRAJECTORIES, papers.scores_of(TRAJECTORIES)), papers.k3),
    "GRPO over sequences, as in the paper": (
        {"grpo": {}, "loss": {"aggregation": "Sequence"}},
        papers.grpo(TRAJECTORIES, papers.scores_of(TRAJECTORIES)),
        papers.k3,
    ),
    "Dr.GRPO": (
        {"grpo": {"normalizeByStd": False}, "loss": {"aggregation": "Constant"}},
        papers.grpo(TRAJECTORIES, papers.scores_of(TRAJECTORIES), by_std=False),
        papers.k3,
    ),
    "RLOO": ({"rloo": {}}, papers.rloo(TRAJECTORIES, papers.sequence_rewards(TRAJECTORIES, TOLD, papers.k1)), None),
    "REINFORCE++": (
        {"reinforcePlusPlus": {"clipLow": 0.1}},
        papers.white(papers.reinforce(TRAJECTORIES, TOLD, 1.0)),
        None,
    ),
    "REINFORCE++-baseline": (
        {"reinforcePlusPlus": {"groupBaseline": True}, "kl": {"placement": "Loss", "estimator": "K3"}},
        papers.white(papers.reinforce(TRAJECTORIES, Told(TOLD.policy, TOLD.policy, []), 1.0, baseline=True)),
        papers.k3,
    ),
}


def objective(logits: torch.Tensor, algorithm: Algorithm, advantages: papers.Advantages, kl: Any) -> float:
    """The loss as the paper has it."""
    logprobs, entropies = plain(logits)
    settings, loss = algorithm.chosen(), algorithm.loss
    terms = {}
    for t in TRAJECTORIES:
        i = t.sample_id
        row = papers.loss_terms(
            logprobs[i], TOLD.policy[i], advantages[i], settings.clip_low, settings.clip_high, loss.dual_clip
        )
        row = [x - loss.entropy_coefficient * h for x, h in zip(row, entropies[i], strict=True)]
        if kl is not None:
            pulls = [COEFFICIENT * kl(p, r) for p, r in zip(logprobs[i], TOLD.reference[i], strict=True)]
            row = [x + pull for x, pull in zip(row, pulls, strict=True)]
        terms[i] = row
    return papers.aggregate(terms, loss.aggregation, LONGEST)


@pytest.mark.parametrize(("settings", "advantages", "kl"), CASES.values(), ids=CASES.keys())
def test_loss_and_gradient_are_those_of_the_paper(
    settings: dict[str, Any], advantages: papers.Advantages, kl: Any
) -> None:
    algorithm = Algorithm.model_validate(settings)
    found = annotate(
        [[make_pack([TRAJECTORIES[i] for i in ids], torch.device("cpu")) for ids in PACKS]],
        Table(OLD),
        Table(REFERENCE),
        Values(VALUES) if algorithm.has_critic else None,
        algorithm,
        temperature=1.0,
        kl_coefficient=COEFFICIENT,
        max_new_tokens=LONGEST,
        decoupled=False,
        device=torch.device("cpu"),
    )
    actor, totals = Table(NEW), Totals()
    actor_gradients(actor, found.batches[0], 1.0, algorithm, COEFFICIENT, totals)  # type: ignore[arg-type]
    total = totals.losses["policy_loss"] - totals.losses.get("entropy_bonus", 0.0) + totals.losses.get("kl_loss", 0.0)
    assert total == pytest.approx(objective(NEW, algorithm, advantages, kl), rel=1e-5)
    assert totals.counts["clip_fraction"] > 0, "the case clips something"
    step = 1e-5
    for place in torch.cartesian_prod(torch.arange(TOKENS), torch.arange(WORDS)).tolist():
        sides = []
        for sign in (1, -1):
            moved = NEW.clone()
            moved[tuple(place)] += sign * step
            sides.append(objective(moved, algorithm, advantages, kl))
        wanted = (sides[0] - sides[1]) / (2 * step)
        assert actor.logits.grad is not None
        assert float(actor.logits.grad[tuple(place)]) == pytest.approx(wanted, rel=1e-4, abs=1e-7)


def test_the_critics_loss_is_a_mean_over_tokens_whatever_the_aggregation() -> None:
    for aggregation, clip in (("Token", 0.2), ("Constant", 0.2), ("Token", 0.05), ("Token", 100.0)):
        algorithm = Algorithm.model_validate({"ppo": {"valueClip": clip}, "loss": {"aggregation": aggregation}})
        found = annotate(
            [[make_pack([TRAJECTORIES[i] for i in ids], torch.device("cpu")) for ids in PACKS]],
            Table(OLD), None, Values(VALUES), algorithm,
            temperature=1.0, kl_coefficient=0.0, max_new_tokens=LONGEST, decoupled=False, device=torch.device("cpu"),
        )  # fmt: skip
        critic, totals = Values(NEW_VALUES), Totals()
        critic_gradients(critic, found.batches[0], found.tokens[0], algorithm.chosen(), totals)  # type: ignore[arg-type]
        raw = papers.ppo(TRAJECTORIES, Told(TOLD.policy, TOLD.policy, TOLD.values))
        new = iter(NEW_VALUES[:, 0].tolist())
        wanted = 0.0
        for t in TRAJECTORIES:
            for a, old in zip(raw[t.sample_id], TOLD.values[t.sample_id], strict=True):
                v, r = next(new), a + old
                bounded = old + min(max(v - old, -clip), clip)
                wanted += 0.5 * max((v - r) ** 2, (bounded - r) ** 2) / TOKENS
        assert totals.losses["value_loss"] == pytest.approx(wanted, rel=1e-5)
