"""What samples are worth: the weighted sum of all rewards."""

import asyncio
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, Self

from tokenizers import Tokenizer

from simplerl_api import credentials
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.rewards import Reward
from simplerl_trainer.rewards import python, worker
from simplerl_trainer.rewards.http import Service
from simplerl_trainer.rewards.messages import Case, Setup, pack, unpack
from simplerl_trainer.rewards.outcome import FAILURES, Outcome, Verdict
from simplerl_trainer.rewards.surroundings import PLAIN, Surroundings
from simplerl_trainer.rewards.workers import Pool
from simplerl_trainer.samples import Finish, Sample, Score

MEMORY_LIMIT = 2 * 2**30
"""Bytes of data of one reward process: numbers such as 9^{9^9} would fill the machine."""
CODE_MEMORY_LIMIT = 8 * 2**30
"""Bytes of data of one process that runs a user's function, which may bring libraries of its own."""


class Judge(Protocol):
    """One reward at work."""

    async def score(self, cases: Sequence[Case]) -> list[Outcome]: ...

    async def close(self) -> None: ...


class Scorer:
    """Scores samples, each reward in processes of its own, where their texts are decoded too; leaving the context ends
    them."""

    def __init__(
        self,
        rewards: Sequence[Reward],
        model_folder: str | None,
        processes: int | None = None,
        environment: Mapping[str, str] | None = None,
        surroundings: Surroundings = PLAIN,
    ) -> None:
        """`model_folder` holds the tokenizer; None where all cases are texts. `processes` are those of each reward;
        absent: half the CPUs, shared out among the rewards, at least 2 and at most 8. `environment` holds the services'
        tokens; absent: the process's. `surroundings` are those of the reward processes."""
        # reward models are run by the ranks (policy/judges.py)
        here = [(i, reward) for i, reward in enumerate(rewards) if reward.model is None]
        self._rewards = tuple(reward for _, reward in here)
        tokenizer_file = "" if model_folder is None else f"{model_folder}/tokenizer.json"
        self._texts = _Texts(tokenizer_file)
        count = processes or _default_processes(len(self._rewards))
        self._judges: list[Judge] = [
            Pool(_setup(reward, i, tokenizer_file), count, own.timeout_seconds, surroundings)
            if (own := reward.math or reward.python or reward.task)
            else _service(reward, i, environment or os.environ)
            for i, reward in here
        ]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for judge in self._judges:
            await judge.close()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """One score for each sample, in their order; where a reward hangs or fails, its part is its documented score
        for that, and its name is in `failed`.

        Raises TrainerFailure(INTERNAL) where no reward process starts.
        """
        return await self.score_cases([_case(sample) for sample in samples])

    async def score_cases(self, cases: Sequence[Case]) -> list[Score]:
        """As `score`, of responses that may also be texts."""
        scoring = [judge.score(await self._fit(cases, r)) for judge, r in zip(self._judges, self._rewards, strict=True)]
        outcomes = await asyncio.gather(*scoring)
        by_case = zip(*outcomes, strict=True) if outcomes else [()] * len(cases)
        return [combine(self._rewards, each) for each in by_case]

    async def _fit(self, cases: Sequence[Case], reward: Reward) -> Sequence[Case]:
        """The cases as a reward wants them: small for the judge of answers, as texts for a service."""
        if reward.math is not None:
            return [Case(case.response, case.answer, tolerance=case.tolerance) for case in cases]
        return await asyncio.to_thread(self._texts.of, cases) if reward.http is not None else cases


async def check(
    rewards: Sequence[Reward],
    environment: Mapping[str, str] | None = None,
    surroundings: Surroundings = PLAIN,
) -> None:
    """Tries what can be tried before there is a model: that functions load and services answer.

    Raises TrainerFailure(INVALID_INPUT) with a sentence that names the reward's field.
    """
    for i, reward in enumerate(rewards):
        if reward.python is not None:
            await worker.check(_setup(reward, i, ""), surroundings)
        if reward.http is not None:
            service = _service(reward, i, environment or os.environ)
            try:
                await service.check()
            finally:
                await service.close()


def combine(rewards: Sequence[Reward], outcomes: Sequence[Outcome]) -> Score:
    """The score of a response from the outcomes of all rewards.

    Verdict and answer are those of the first math or task reward; without one a response is right whose score is above
    0.
    """
    value = sum(r.weight * o.score for r, o in zip(rewards, outcomes, strict=True))
    decides = next((o for r, o in zip(rewards, outcomes, strict=True) if r.math or r.task), None)
    return Score(
        value=value,
        verdict=decides.verdict if decides else Verdict.EQUAL if value > 0 else Verdict.DIFFERENT,
        extracted=decides.extracted if decides else "",
        why=_why(rewards, outcomes),
        parts={r.name: o.score for r, o in zip(rewards, outcomes, strict=True)},
        failed=tuple(r.name for r, o in zip(rewards, outcomes, strict=True) if o.verdict in FAILURES),
    )


def with_models(score: Score, rewards: Sequence[Reward], scores: Sequence[float]) -> Score:
    """The score with those of the reward models among `rewards`, in their order; one that is not finite counts as the
    reward's `failed`."""
    parts, failed, value = dict(score.parts), list(score.failed), score.value
    why = [score.why] if score.why else []
    for reward, number in zip((r for r in rewards if r.model), scores, strict=True):
        assert reward.model is not None
        if not math.isfinite(number):
            failed.append(reward.name)
            why.append(f"{reward.name}: the text is too long for the reward model, or its score is not finite")
            number = reward.model.failed
        parts[reward.name] = number
        value += reward.weight * number
    verdict = score.verdict
    if not any(r.math or r.task for r in rewards):
        verdict = Verdict.EQUAL if value > 0 else Verdict.DIFFERENT
    return replace(score, value=value, verdict=verdict, why="; ".join(why), parts=parts, failed=tuple(failed))


def _why(rewards: Sequence[Reward], outcomes: Sequence[Outcome]) -> str:
    if len(outcomes) == 1:
        return outcomes[0].why
    return "; ".join(f"{r.name}: {o.why}" for r, o in zip(rewards, outcomes, strict=True) if o.why)


def verdicts(scores: Sequence[Score]) -> dict[str, int]:
    """How many samples got each verdict."""
    counts = Counter(s.verdict for s in scores)
    return {str(v): counts[v] for v in Verdict}


def _setup(reward: Reward, index: int, tokenizer_file: str) -> Setup:
    field = f"rewards[{index}]"
    if reward.python is None:
        return Setup(reward, field, MEMORY_LIMIT, tokenizer_file=tokenizer_file)
    code = str(python.code_file(reward.python, index))
    return Setup(reward, field, CODE_MEMORY_LIMIT, code=code, tokenizer_file=tokenizer_file)


def _service(reward: Reward, index: int, environment: Mapping[str, str]) -> Service:
    assert reward.http is not None
    field = f"rewards[{index}]"
    token = environment.get(credentials.reward_token(index), "").strip() or None
    if token is None and reward.http.token_secret_ref is not None:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{field}.http.tokenSecretRef is given, but the variable {credentials.reward_token(index)} is empty: set "
            "it where Kubernetes does not",
        )
    return Service(reward, field, token)


def _case(sample: Sample) -> Case:
    prompt = sample.prompt
    return Case(
        response=pack(sample.response_ids),
        answer=prompt.answer,
        prompt=pack(prompt.token_ids),
        question=prompt.question,
        record=prompt.record,
        truncated=sample.finish is Finish.LENGTH,
        gym=prompt.gym,
        tolerance=prompt.tolerance,
    )


class _Texts:
    """Token ids to texts, in this process."""

    def __init__(self, tokenizer_file: str) -> None:
        self._file = tokenizer_file
        self._tokenizer: Tokenizer | None = None

    def of(self, cases: Sequence[Case]) -> list[Case]:
        """The cases with their texts."""
        return [
            Case(
                self._text(c.response, plain=True), c.answer, self._text(c.prompt, plain=False), c.question, c.record,
                c.truncated, c.gym,
            )
            for c in cases
        ]  # fmt: skip

    def _text(self, found: bytes | str, *, plain: bool) -> str:
        if isinstance(found, str):
            return found
        if self._tokenizer is None:
            self._tokenizer = Tokenizer.from_file(self._file)
        return str(self._tokenizer.decode(unpack(found), skip_special_tokens=plain))


def _default_processes(rewards: int) -> int:
    # the affinity, not the machine's count: a job may be held to some of the CPUs
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, max(2, cpus // (2 * max(1, rewards))))
