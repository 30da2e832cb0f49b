"""`simplerl grade`: responses in a file, scored on the same reward processes as those of a run."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import ReasoningGym
from simplerl_api.spec.rewards import Reward
from simplerl_trainer.rewards import score
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Verdict
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.surroundings import PLAIN, Surroundings
from simplerl_trainer.samples import Finish, Score


@dataclass(frozen=True, slots=True)
class Graded:
    """One line of the file and what it is worth."""

    line: int
    """Its number, from 1."""
    score: Score

    @property
    def judged(self) -> bool:
        """Whether every reward could score it."""
        return not self.score.failed and self.score.verdict != Verdict.BAD_GOLD

    def document(self) -> dict[str, Any]:
        """As JSON, by the names of a run's samples."""
        found = self.score
        return {
            "line": self.line,
            "score": found.value,
            "verdict": str(found.verdict),
            "extracted": found.extracted,
            "why": found.why,
            "rewards": dict(found.parts),
        }


def summary(graded: Sequence[Graded]) -> dict[str, Any]:
    """The means over all lines."""
    verdicts = Counter(str(g.score.verdict) for g in graded)
    return {
        "lines": len(graded),
        "score": sum(g.score.value for g in graded) / len(graded),
        "accuracy": verdicts[Verdict.EQUAL] / len(graded),
        "verdicts": dict(verdicts.most_common()),
        "notJudged": sum(not g.judged for g in graded),
    }


async def grade(
    file: Path, rewards: Sequence[Reward], gym: ReasoningGym | None = None, surroundings: Surroundings = PLAIN
) -> list[Graded]:
    """Every line of a JSON Lines file, in its order. `gym`: the generator that made the questions, for a task reward.

    Raises TrainerFailure(INVALID_INPUT) naming the line or the reward that cannot be used.
    """
    for i, reward in enumerate(rewards):
        if reward.model is not None:
            raise _invalid(f"rewards[{i}].model is a reward model, which only a run's ranks can ask: leave it out here")
    read = _read(file, gym)
    await score.check(rewards, surroundings=surroundings)
    async with Scorer(rewards, None, surroundings=surroundings) as scorer:
        scores = await scorer.score_cases([case for _, case in read])
    return [Graded(line, found) for (line, _), found in zip(read, scores, strict=True)]


def _read(file: Path, gym: ReasoningGym | None) -> list[tuple[int, Case]]:
    found = []
    # split at \n only: str.splitlines() would also cut at U+2028, which JSON texts may hold as they are
    for number, data in enumerate(file.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if data.strip():
            found.append((number, _case(data, f"{file} line {number}", gym)))
    if not found:
        raise _invalid(f"{file} holds no line: give an object with response and answer on each")
    return found


def _case(data: bytes, place: str, gym: ReasoningGym | None) -> Case:
    try:
        row = json.loads(data.decode("utf-8"))
    except ValueError as e:
        raise _invalid(f"{place} is not JSON in UTF-8 ({e}): give an object with response and answer") from e
    if not isinstance(row, dict):
        raise _invalid(f"{place} is not an object: give one with response and answer")
    return Case(
        response=_text(row, "response", place),
        answer=_text(row, "answer", place),
        prompt=_text(row, "prompt", place, ""),
        question=_text(row, "question", place, ""),
        record=row,
        truncated=row.get("finish") == Finish.LENGTH or row.get("truncated") is True,
        gym=gym,
    )


def _text(row: Mapping[str, Any], key: str, place: str, otherwise: str | None = None) -> str:
    value = row.get(key, otherwise)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise _invalid(f"{place} holds {json.dumps(value)[:80]} under {key}: give a text")
    return value


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
