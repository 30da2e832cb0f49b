"""Accuracy and counts of an evaluation."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence

import pytest

from simplerl_trainer.evaluation import metrics
from simplerl_trainer.evaluation.evaluate import Settings, draw, evaluate
from simplerl_trainer.evaluation.records import level, subject
from simplerl_trainer.rewards.stream import CHUNK
from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.rollout.seeds import Stream, seed
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

SETTINGS = Settings(job_seed=7, temperature=1.0, max_new_tokens=8, samples=3)


class Drawn:
    """Stands in the pool's place: every third response is cut."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> AsyncIterator[Finished]:
        self.asked += requests
        for r in reversed(requests):
            await asyncio.sleep(0)
            yield Finished(r.id, (r.id,), Finish.LENGTH if r.id % 3 == 0 else Finish.STOP, None, 1)


def prompts(count: int) -> list[Prompt]:
    return [Prompt(row=n, question="", answer="", token_ids=(1,)) for n in range(count)]


async def judge(samples: Sequence[Sample]) -> Sequence[Score]:
    assert len(samples) <= CHUNK
    await asyncio.sleep(0)
    verdicts = {0: "equal", 1: "different", 2: "no_answer", 3: "timeout"}
    return [Score(value=0.0, verdict=verdicts[s.id % 4]) for s in samples]


async def test_accuracy_is_the_share_of_right_answers_over_all_samples() -> None:
    pool = Drawn()
    result = await evaluate(pool, prompts(40), judge, SETTINGS)
    assert [r.sample.id for r in result.scored] == list(range(120))
    assert all(r.score.verdict == "equal" for r in result.scored if r.sample.id % 4 == 0)
    found = result.figures
    assert (found.accuracy, found.right, found.no_answer, found.truncated) == (0.25, 30, 30, 40)
    assert [r.seed for r in pool.asked[:4]] == [seed(7, 0, n // 3, n % 3, Stream.EVALUATION) for n in range(4)]
    assert not any(r.logprobs for r in pool.asked)


async def test_what_the_scorer_raises_ends_the_evaluation() -> None:
    async def broken(samples: Sequence[Sample]) -> Sequence[Score]:
        raise RuntimeError("the judges are gone")

    with pytest.raises(RuntimeError, match="the judges are gone"):
        await evaluate(Drawn(), prompts(40), broken, SETTINGS)


def test_without_answers_there_is_no_accuracy() -> None:
    assert math.isnan(metrics.figures([]).accuracy)


async def test_what_was_drawn_before_is_not_drawn_again() -> None:
    whole, rest, arrived = Drawn(), Drawn(), list[int]()
    await draw(whole, prompts(40), judge, SETTINGS)
    done = set(range(0, 120, 7))
    found = await draw(
        rest,
        prompts(40),
        judge,
        SETTINGS,
        skip=done,
        arrived=lambda chunk: arrived.extend(s.sample.id for s in chunk),
        size=1,
    )
    assert [s.sample.id for s in found] == sorted(arrived) == sorted(set(range(120)) - done)
    assert rest.asked == [r for r in whole.asked if r.id not in done], "the same seeds as in one sitting"


async def test_prompts_that_are_too_long_to_be_asked_count_as_failed() -> None:
    long = Prompt(row=9, question="", answer="", token_ids=(1,) * 99, record={"level": "Level 5", "type": "Algebra"})
    pool = Drawn()
    found = (await evaluate(pool, prompts(4), judge, SETTINGS, unasked=[long])).figures
    assert len(pool.asked) == 12, "it is not asked"
    assert (found.questions, found.samples, found.failed, found.right) == (5, 15, 3, 3)
    assert found.accuracy == 3 / 15
    assert (found.levels["5"].accuracy, found.subjects["Algebra"].questions) == (0.0, 1)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param({"level": 5, "subject": "Algebra"}, ("5", "Algebra"), id="MATH500"),
        pytest.param({"level": "Level 5", "type": "Algebra"}, ("5", "Algebra"), id="MATH and Minerva"),
        pytest.param({"subfield": "Algebra", "level": None}, ("", "Algebra"), id="OlympiadBench"),
        pytest.param({"type": 3}, ("", ""), id="neither"),
    ],
)
def test_level_and_subject_are_read_from_the_record(record: dict[str, object], expected: tuple[str, str]) -> None:
    prompt = Prompt(row=0, question="", answer="", token_ids=(1,), record=record)
    assert (level(prompt), subject(prompt)) == expected
