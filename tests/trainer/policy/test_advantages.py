"""Annotation against the papers' formulas in plain Python: scores, KL, groups, discounts and whitening together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.trainer.policy.papers import (
    COEFFICIENT,
    Told,
    grpo,
    k1,
    k3,
    ppo,
    reinforce,
    rloo,
    scores_of,
    sequence_rewards,
    white,
)

from simplerl_api.spec.algorithm import Algorithm
from simplerl_trainer.policy.annotate import Annotated, annotate
from simplerl_trainer.policy.packing import Pack, make_pack
from simplerl_trainer.policy.protocol import Trajectory

CPU = torch.device("cpu")
LONGEST = 20
PACKS = [[0, 5, 2, 9], [11, 4], [], [1, 3, 8], [7, 6, 15, 14, 13, 12, 10]]
"""Sample ids; groups of four lie across packs."""


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """A process group of one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def told(trajectories: list[Trajectory]) -> Told:
    generator = torch.Generator().manual_seed(9)

    def numbers(t: Trajectory, mean: float) -> list[float]:
        return (torch.randn(len(t.response_ids), generator=generator, dtype=torch.float64) * 0.5 + mean).tolist()

    policy = [numbers(t, -3) for t in trajectories]
    reference = [
        [p + d for p, d in zip(of, numbers(t, 0), strict=True)] for of, t in zip(policy, trajectories, strict=True)
    ]
    return Told(policy, reference, [numbers(t, 0.5) for t in trajectories])


def annotated(trajectories: Sequence[Trajectory], told: Told, algorithm: dict[str, Any]) -> Annotated:
    """The annotation of two optimizer batches, by models that say what was told."""
    by_id = {t.sample_id: t for t in trajectories}

    def flat(pack: Pack, table: list[list[float]]) -> torch.Tensor:
        return torch.tensor([x for i in pack.sample_ids for x in table[i]], dtype=torch.float64)

    packs = [make_pack([by_id[i] for i in ids if i in by_id], CPU) for ids in PACKS]
    chosen = Algorithm.model_validate(algorithm)
    return annotate(
        [packs[:3], packs[3:]],
        lambda pack, temperature, entropies: (flat(pack, told.policy), torch.ones(pack.tokens)),
        lambda pack, temperature: (flat(pack, told.reference), None),
        (lambda pack: flat(pack, told.values)) if chosen.has_critic else None,
        chosen,
        temperature=1.0,
        kl_coefficient=COEFFICIENT,
        max_new_tokens=LONGEST,
        decoupled=False,
        device=CPU,
    )


def tokens(found: Annotated) -> dict[int, list[float]]:
    """Advantages of each sample's tokens by its id."""
    out = {}
    for e in (e for batch in found.batches for e in batch):
        parts = e.advantages.split(list(e.observed.pack.response_lengths))
        out |= {i: part.tolist() for i, part in zip(e.observed.pack.sample_ids, parts, strict=True)}
    return out


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "PPO": ({}, lambda ts, told: white(ppo(ts, told))),
    "PPO, discounted, not whitened": (
        {"ppo": {"whiten": False, "gamma": 0.9, "gaeLambda": 0.8}},
        lambda ts, told: ppo(ts, told, 0.8, 0.9),
    ),
    "GRPO, KL in the loss": ({"grpo": {}}, lambda ts, told: grpo(ts, scores_of(ts))),
    "GRPO, KL in the reward": (
        {"grpo": {}, "kl": {"placement": "Reward"}},
        lambda ts, told: grpo(ts, sequence_rewards(ts, told, k3)),
    ),
    "Dr.GRPO": ({"grpo": {"normalizeByStd": False}}, lambda ts, told: grpo(ts, scores_of(ts), by_std=False)),
    "RLOO": ({"rloo": {}}, lambda ts, told: rloo(ts, sequence_rewards(ts, told, k1))),
    "RLOO, KL in the loss": (
        {"rloo": {}, "kl": {"placement": "Loss", "estimator": "K2"}},
        lambda ts, told: rloo(ts, scores_of(ts)),
    ),
    "REINFORCE++": ({"reinforcePlusPlus": {}}, lambda ts, told: white(reinforce(ts, told, 1.0))),
    "REINFORCE++, discounted": (
        {"reinforcePlusPlus": {"gamma": 0.9}},
        lambda ts, told: white(reinforce(ts, told, 0.9)),
    ),
    "REINFORCE++-baseline": (
        {"reinforcePlusPlus": {"groupBaseline": True}},
        lambda ts, told: white(reinforce(ts, told, 1.0, baseline=True)),
    ),
}
CASE = pytest.mark.parametrize(("algorithm", "formula"), CASES.values(), ids=CASES.keys())


@CASE
def test_every_tokens_advantage_is_its_papers(
    algorithm: dict[str, Any], formula: Any, trajectories: list[Trajectory], told: Told
) -> None:
    found, wanted = tokens(annotated(trajectories, told, algorithm)), formula(trajectories, told)
    assert found.keys() == wanted.keys() == set(range(16))
    for i, row in wanted.items():
        assert found[i] == pytest.approx(row, rel=1e-6, abs=1e-6)  # whitening's and GRPO's epsilons


@CASE
def test_each_samples_advantage_is_the_mean_of_its_tokens(
    algorithm: dict[str, Any], formula: Any, trajectories: list[Trajectory], told: Told
) -> None:
    found = annotated(trajectories, told, algorithm)
    for i, row in tokens(found).items():
        assert found.annotation.advantages[i] == pytest.approx(sum(row) / len(row))


@CASE
def test_a_sample_that_is_left_out_counts_nowhere(
    algorithm: dict[str, Any], formula: Any, trajectories: list[Trajectory], told: Told
) -> None:
    """Fault 3 (TRL#6439): what is masked must be in no mean, deviation, baseline or denominator."""
    kept = [t for t in trajectories if t.sample_id not in (2, 5, 6)]
    found = annotated(kept, told, algorithm)
    wanted = formula(kept, told)
    assert found.annotation.advantages.keys() == {t.sample_id for t in kept}
    for i, row in tokens(found).items():
        assert row == pytest.approx(wanted[i], rel=1e-6, abs=1e-6)
    assert sum(found.tokens) == sum(len(t.response_ids) for t in kept)
    for batch in found.batches:
        assert sum(float(e.weights.sum()) for e in batch) == pytest.approx(1)


@pytest.mark.parametrize("algorithm", [{"grpo": {}}, {"rloo": {}}, {"grpo": {"normalizeByStd": False}}], ids=str)
def test_groups_whose_scores_are_equal_teach_nothing(
    algorithm: dict[str, Any], trajectories: list[Trajectory], told: Told
) -> None:
    """Fault 9 (OpenRLHF#1250)."""
    alike = [replace(t, score=0.1) for t in trajectories]
    found = annotated(alike, told, algorithm | {"kl": {"placement": "Loss", "estimator": "K3"}})
    assert set(found.annotation.advantages.values()) == {0.0}
    assert found.annotation.metrics["advantage_std"] == 0.0


def test_scores_are_clipped_before_advantages_are_made(trajectories: list[Trajectory], told: Told) -> None:
    wild = [replace(t, score=1000.0 * (t.score - 0.5)) for t in trajectories]
    clipped = [replace(t, score=2.0 if t.score > 0 else -2.0) for t in wild]
    found = annotated(wild, told, {"rloo": {}, "rewardClip": 2.0})
    assert found.annotation.advantages == annotated(clipped, told, {"rloo": {}}).annotation.advantages
    assert found.annotation.advantages != annotated(wild, told, {"rloo": {}}).annotation.advantages


@pytest.mark.parametrize("aggregation", ["Token", "Sequence", "Constant"])
def test_weights_are_counted_over_the_optimizer_batch(
    aggregation: str, trajectories: list[Trajectory], told: Told
) -> None:
    found = annotated(trajectories, told, {"grpo": {}, "loss": {"aggregation": aggregation}})
    for batch, ids in zip(found.batches, ([0, 5, 2, 9, 11, 4], [1, 3, 8, 7, 6, 15, 14, 13, 12, 10]), strict=True):
        lengths = {i: len(trajectories[i].response_ids) for i in ids}
        for e in batch:
            expected = []
            for i in e.observed.pack.sample_ids:
                one = {
                    "Token": 1 / sum(lengths.values()),
                    "Sequence": 1 / (len(ids) * lengths[i]),
                    "Constant": 1 / (len(ids) * LONGEST),
                }[aggregation]
                expected += [one] * lengths[i]
            assert e.weights.tolist() == pytest.approx(expected)


def test_a_step_without_samples_is_refused(told: Told) -> None:
    with pytest.raises(ValueError, match="annotate was called without any sample: give at least one"):
        annotated([], told, {})
