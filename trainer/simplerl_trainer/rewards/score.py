"""What samples are worth: the weighted sum of all rewards."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import Self

from simplerl_api.spec.rewards import MathReward, Reward
from simplerl_trainer.rewards.math import Verdict, score
from simplerl_trainer.rewards.messages import Case, Judged, Setup, pack
from simplerl_trainer.rewards.workers import Pool
from simplerl_trainer.samples import Sample, Score

MEMORY_LIMIT = 2 * 2**30
"""Bytes of data of one reward process: numbers such as 9^{9^9} would fill the machine."""


class Scorer:
    """Scores samples in processes of its own, where their texts are decoded too; leaving the context ends them."""

    def __init__(self, rewards: Sequence[Reward], model_folder: str, processes: int | None = None) -> None:
        """`model_folder` holds the tokenizer. Absent `processes`: half the CPUs, at least 2 and at most 8."""
        self._rewards = tuple(rewards)
        setup = Setup(self._rewards, f"{model_folder}/tokenizer.json", MEMORY_LIMIT)
        timeout = sum(rules(reward).timeout_seconds for reward in rewards)
        self._pool = Pool(setup, processes or _default_processes(), timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score for each sample, in their order; a sample whose judging hangs or fails is scored as wrong.

        Raises TrainerFailure(INTERNAL) where no reward process starts.
        """
        judged = await self._pool.judge([Case(pack(s.response_ids), s.prompt.answer) for s in samples])
        return [combine(self._rewards, j) for j in judged]


def combine(rewards: Sequence[Reward], judged: Judged) -> Score:
    """The score of a judged response; verdict and answer are the first reward's."""
    parts = {r.name: score(j, rules(r)) for r, j in zip(rewards, judged.judgements, strict=True)}
    first = judged.judgements[0]
    return Score(
        value=sum(r.weight * parts[r.name] for r in rewards),
        verdict=first.verdict,
        extracted=first.extracted,
        why=first.why,
        parts=parts,
    )


def rules(reward: Reward) -> MathReward:
    """The settings of a reward."""
    assert reward.math is not None, "a reward has exactly one member, and math is the only one"
    return reward.math


def verdicts(scores: Sequence[Score]) -> dict[str, int]:
    """How many samples got each verdict."""
    counts = Counter(s.verdict for s in scores)
    return {str(v): counts[v] for v in Verdict}


def _default_processes() -> int:
    # the affinity, not the machine's count: a job may be held to some of the CPUs
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, max(2, cpus // 2))
