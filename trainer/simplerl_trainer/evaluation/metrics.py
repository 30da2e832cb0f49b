"""The figures of an evaluation, from its judged samples. Pure functions."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplerl_trainer.rewards.outcome import Verdict
from simplerl_trainer.samples import Finish

RESAMPLES = 2000
"""Bootstrap resamples of the questions."""
INTERVAL = 0.95


@dataclass(frozen=True, slots=True)
class Answer:
    """What counts of one judged sample."""

    question: int
    """Position of its question in the data set."""
    verdict: str
    extracted: str
    tokens: int
    finish: str
    level: str = ""
    subject: str = ""

    @property
    def right(self) -> bool:
        return self.verdict == Verdict.EQUAL


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the questions, of one level or subject."""

    questions: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What an evaluation found."""

    questions: int
    samples: int
    """All samples, over all questions: what accuracy is divided by."""
    right: int
    accuracy: float
    """Share of right answers, 0 to 1, over all samples; nan without any."""
    low: float
    high: float
    """Ends of the 95 % interval of the accuracy, by resampling questions."""
    pass_at: Mapping[int, float]
    """By k: the chance that at least one of k samples of a question is right."""
    majority_at: Mapping[int, float]
    """By k: share of the questions whose commonest answer among the first k samples is right."""
    mean_tokens: float
    """Of the responses that were drawn."""
    truncated: int
    """Responses that were cut at the most tokens."""
    no_answer: int
    timeouts: int
    """Responses whose judging took too long."""
    bad_golds: int
    """Samples of questions whose own answer cannot be read."""
    failed: int
    """Samples that could not be drawn or judged; they count as wrong."""
    levels: Mapping[str, Group]
    subjects: Mapping[str, Group]

    def document(self) -> dict[str, Any]:
        """As JSON; a figure that is not finite is null."""
        return {
            "questions": self.questions,
            "samples": self.samples,
            "right": self.right,
            "accuracy": _finite(self.accuracy),
            "interval": [_finite(self.low), _finite(self.high)],
            "passAt": {str(k): round(v, 6) for k, v in self.pass_at.items()},
            "majorityAt": {str(k): round(v, 6) for k, v in self.majority_at.items()},
            "meanTokens": _finite(self.mean_tokens),
            "truncated": self.truncated,
            "noAnswer": self.no_answer,
            "timeouts": self.timeouts,
            "badGolds": self.bad_golds,
            "failed": self.failed,
            "byLevel": {name: _group(g) for name, g in self.levels.items()},
            "bySubject": {name: _group(g) for name, g in self.subjects.items()},
        }


def figures(answers: Sequence[Answer], seed: int = 0) -> Figures:
    """The figures of all samples of a data set, which are in the order of their ids."""
    by_question: dict[int, list[Answer]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer)
    groups = list(by_question.values())
    heard = [voices(g) for g in groups]
    low, high = interval([(sum(a.right for a in g), len(g)) for g in groups], seed)
    most = min((len(g) for g in groups), default=0)
    drawn = [a.tokens for a in answers if a.tokens]
    verdicts = Counter(a.verdict for a in answers)
    return Figures(
        questions=len(groups),
        samples=len(answers),
        right=verdicts[Verdict.EQUAL],
        accuracy=mean([float(a.right) for a in answers]),
        low=low,
        high=high,
        pass_at={k: mean([pass_at(len(g), sum(a.right for a in g), k) for g in groups]) for k in ks(most)},
        majority_at={k: mean([float(majority(v[:k])) for v in heard]) for k in ks(most)},
        mean_tokens=mean([float(t) for t in drawn]),
        truncated=sum(a.finish == Finish.LENGTH for a in answers),
        no_answer=verdicts[Verdict.NO_ANSWER],
        timeouts=verdicts[Verdict.TIMEOUT],
        bad_golds=verdicts[Verdict.BAD_GOLD],
        failed=verdicts[Verdict.FAILED],
        levels=_groups((a.level, a) for a in answers),
        subjects=_groups((a.subject, a) for a in answers),
    )


def ks(samples: int) -> Sequence[int]:
    """1, 2, 4 and so on, and the number of samples itself."""
    return sorted({2**i for i in range(samples.bit_length())} | {samples}) if samples else []


def pass_at(samples: int, right: int, k: int) -> float:
    """The chance that k of these samples, drawn without replacement, hold a right one: without bias where pass rates
    of fewer samples are wanted (https://arxiv.org/abs/2107.03374, section 2.1)."""
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


RIGHT, SILENT = -1, -2
"""In the place of a wrong answer's class: a right answer, and none."""


def voices(answers: Sequence[Answer]) -> list[int]:
    """What each sample of a question votes for: RIGHT, SILENT, or the class of a wrong answer.

    Right answers are one answer, wrong ones where the judge finds them equal: `1/2` and `0.5` vote together.
    """
    wrong = [a.extracted for a in answers if not a.right and a.extracted.strip()]
    several = len(set(wrong)) > 1
    if several:
        from simplerl_trainer.rewards.judge.classes import classes  # mpmath, only where answers are compared
    of_wrong = iter(classes(wrong) if several else [0] * len(wrong))
    return [RIGHT if a.right else next(of_wrong) if a.extracted.strip() else SILENT for a in answers]


def majority(voices: Sequence[int]) -> bool:
    """Whether the commonest answer is right; of equally common ones the one that was given first counts."""
    counted = Counter(v for v in voices if v != SILENT)
    # most_common keeps the order of first appearance among equals
    return bool(counted) and counted.most_common(1)[0][0] == RIGHT


def interval(questions: Sequence[tuple[int, int]], seed: int) -> tuple[float, float]:
    """The ends of the bootstrap interval of the mean, from each question's right samples and all of them.

    Questions are drawn, with all their samples: samples of one question say little about another.
    """
    if not questions:
        return math.nan, math.nan
    generator = random.Random(seed)
    means = []
    for _ in range(RESAMPLES):
        drawn = generator.choices(questions, k=len(questions))
        means.append(sum(right for right, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    tail = (1 - INTERVAL) / 2
    return means[int(tail * RESAMPLES)], means[min(RESAMPLES - 1, int((1 - tail) * RESAMPLES))]


def mean(values: Sequence[float]) -> float:
    """The mean; nan of nothing."""
    return sum(values) / len(values) if values else math.nan


def _groups(answers: Iterable[tuple[str, Answer]]) -> dict[str, Group]:
    found: dict[str, list[Answer]] = {}
    for name, answer in answers:
        if name:
            found.setdefault(name, []).append(answer)
    return {
        name: Group(len({a.question for a in found[name]}), mean([float(a.right) for a in found[name]]))
        for name in sorted(found)
    }


def _group(group: Group) -> dict[str, Any]:
    return {"questions": group.questions, "accuracy": _finite(group.accuracy)}


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
