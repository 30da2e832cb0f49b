"""The reward models of a job: they score the samples of a step before its advantages are made."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import torch

from simplerl_trainer.policy import group, reward_model
from simplerl_trainer.policy.protocol import JudgeSetup, RankWork, Trajectory

Judged = dict[int, tuple[float, ...]]
"""Unweighted scores of each sample by each reward model; nan where one could not score."""


def judge(
    judges: Sequence[tuple[JudgeSetup, Callable[..., Any]]], work: RankWork, max_tokens: int, device: torch.device
) -> tuple[RankWork, Judged]:
    """The work with the reward models' weighted scores added to its samples', and those scores.

    Passes hold up to `max_tokens` tokens. Collective.
    """
    if not judges:
        return work, {}
    mine = [t for batch in work.batches for pack in batch for t in pack]

    def most(packs: int) -> int:
        return int(group.maxima({"packs": float(packs)}, device)["packs"])

    by_judge = [
        reward_model.score(model, [t.texts[i] for t in mine], max_tokens, most, device)
        for i, (_, model) in enumerate(judges)
    ]
    judged = {t.sample_id: scores for t, *scores in zip(mine, *by_judge, strict=True)}
    setups = [setup for setup, _ in judges]

    def scored(t: Trajectory) -> Trajectory:
        return replace(t, score=t.score + total(setups, judged[t.sample_id]))

    batches = [[[scored(t) for t in pack] for pack in batch] for batch in work.batches]
    return replace(work, batches=batches), {i: tuple(scores) for i, scores in judged.items()}


def total(judges: Sequence[JudgeSetup], scores: Sequence[float]) -> float:
    """The weighted sum of a sample's scores; one that is not finite counts as the judge's `failed`."""
    return sum(
        judge.weight * (score if isfinite(score) else judge.failed) for judge, score in zip(judges, scores, strict=True)
    )
