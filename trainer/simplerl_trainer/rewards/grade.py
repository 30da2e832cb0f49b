"""`simplerl grade`: responses in a file, judged or scored on the same reward processes as those of a run."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import ReasoningGym
from simplerl_api.spec.rewards import MathReward, Reward
from simplerl_trainer.data import files, json_text
from simplerl_trainer.data.json_text import KeyTwice, NumberText
from simplerl_trainer.rewards import score
from simplerl_trainer.rewards.judge import Tolerance
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import FAILURES, Verdict
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.surroundings import PLAIN, Surroundings
from simplerl_trainer.samples import Finish, Score


@dataclass(frozen=True, slots=True)
class Lines:
    """JSON Lines and what they are called in messages."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Graded:
    """One line and what it is worth."""

    line: int
    """Its number, from 1."""
    id: Any
    """Its own id; absent: its number."""
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

    def judgement(self) -> dict[str, Any]:
        """As JSON, of the judge's verdict alone. What could not be judged counts as timed out, and `why` says why."""
        found = self.score
        verdict = Verdict.TIMEOUT if found.verdict in FAILURES else found.verdict
        return {"id": self.id, "verdict": str(verdict), "extracted": found.extracted, "why": found.why}


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


async def judge(lines: Lines, timeout_seconds: float = 5.0) -> list[Graded]:
    """Every line judged by the judge of mathematical answers, in their order; `timeout_seconds` bounds one of them.

    Raises TrainerFailure(INVALID_INPUT) naming the line that cannot be used.
    """
    return await grade(lines, [Reward(name="math", math=MathReward(timeout_seconds=timeout_seconds))])


async def grade(
    lines: Lines, rewards: Sequence[Reward], gym: ReasoningGym | None = None, surroundings: Surroundings = PLAIN
) -> list[Graded]:
    """Every line scored, in their order. `gym`: the generator that made the questions, for a task reward.

    Raises TrainerFailure(INVALID_INPUT) naming the line or the reward that cannot be used.
    """
    for i, reward in enumerate(rewards):
        if reward.model is not None:
            raise _invalid(f"rewards[{i}].model is a reward model, which only a run's ranks can ask: leave it out here")
    read = _read(lines, gym)
    await score.check(rewards, surroundings=surroundings)
    async with Scorer(rewards, None, surroundings=surroundings) as scorer:
        scores = await scorer.score_cases([case for _, case in read])
    return [Graded(line, case.record.get("id", line), found) for (line, case), found in zip(read, scores, strict=True)]


def _read(lines: Lines, gym: ReasoningGym | None) -> list[tuple[int, Case]]:
    found = []
    # split at \n only: str.splitlines() would also cut at U+2028, which JSON texts may hold as they are
    for number, data in enumerate(lines.data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if data.strip():
            found.append((number, _case(data, f"{lines.name} line {number}", gym)))
    if not found:
        raise _invalid(f"{lines.name} holds no line: give an object with response and gold on each")
    return found


def _case(data: bytes, place: str, gym: ReasoningGym | None) -> Case:
    try:
        # numbers as they are written: a gold answer of 20 digits is not rounded to a float's 17
        row = json_text.loads(data.decode("utf-8"))
    except KeyTwice as e:
        raise _invalid(f"{place} {e}") from e
    except (ValueError, RecursionError) as e:
        raise _invalid(f"{place} is not JSON in UTF-8 ({e}): give an object with response and gold on each line") from e
    if not isinstance(row, dict):
        raise _invalid(f"{place} is not an object: give one with response and gold on each line")
    record = files.plain(row)
    _check_id(record.get("id"), place)
    # a run's samples have the gold answer under the name that it has in data sets
    gold = "answer" if "gold" not in row and "answer" in row else "gold"
    return Case(
        response=_text(row, "response", place),
        answer=_text(row, gold, place),
        prompt=_text(row, "prompt", place, ""),
        question=_text(row, "question", place, ""),
        record=record,
        truncated=row.get("finish") == Finish.LENGTH or row.get("truncated") is True,
        gym=gym,
        tolerance=_tolerance(row.get("tolerance"), place),
    )


def _check_id(value: Any, place: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as e:
        raise _invalid(f"{place} holds {_shown(value)} under id, which no line of JSON can: give a text") from e


def _text(row: Mapping[str, Any], key: str, place: str, otherwise: str | None = None) -> str:
    if key not in row and otherwise is None:
        raise _invalid(f"{place} has no {key}: give response and gold on each line")
    value = row.get(key, otherwise)
    if not isinstance(value, str):
        raise _invalid(f"{place} holds {_shown(value)} under {key}: give a text or a number")
    return str(value)


def _tolerance(value: Any, place: str) -> Tolerance | None:
    """A number is relative; `{"absolute": 0.1}` is not."""
    if value is None:
        return None
    if (number := _number(value)) is not None:
        return Tolerance(relative=number)
    if isinstance(value, dict) and value and value.keys() <= {"relative", "absolute"}:
        numbers = {k: number for k, v in value.items() if (number := _number(v)) is not None}
        if len(numbers) == len(value):
            return Tolerance(**numbers)
    raise _invalid(
        f"{place} holds {_shown(value)} under tolerance: give a number of at least 0, which is relative, or "
        '{"absolute": 0.1}'
    )


def _number(value: Any) -> float | None:
    """A number of at least 0, if the value is one."""
    return number if isinstance(value, NumberText) and 0 <= (number := float(value)) < math.inf else None


def _shown(value: Any) -> str:
    return json.dumps(files.plain(value))[:80]


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
