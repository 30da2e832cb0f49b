"""Batches: dynamic sampling keeps what varies, asks fresh prompts for the rest, and never for ever."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api import overrides, validation, yaml12
from simplerl_trainer.batch import Batch, Drawer
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"
PROMPTS = [Prompt(row, f"question {row}", "", (row,)) for row in range(20)]
PER_STEP, SAMPLES = 4, 2


class Engines:
    """Stands in the pool's place."""

    def __init__(self) -> None:
        self.asked: list[list[Request]] = []

    async def generate(self, requests: Sequence[Request]) -> AsyncGenerator[Finished]:
        self.asked.append(list(requests))
        for r in reversed(requests):
            logprobs = (-0.5,) if r.logprobs else None
            yield Finished(r.id, (r.seed % 97,), Finish.STOP, logprobs, 5)


def drawer(varies: Callable[[int], bool], engines: Engines | None = None, **settings: Any) -> Drawer:
    """Draws 2 samples of 4 prompts a step; `varies` says of a prompt's row whether its samples' scores differ."""

    async def score(samples: Sequence[Sample]) -> Sequence[Score]:
        return [Score(float(s.id % SAMPLES if varies(s.prompt.row) else 1), "equal") for s in samples]

    given_ = {"rollout.promptsPerStep": PER_STEP, "rollout.samplesPerPrompt": SAMPLES, "training.trainBatchSize": 2}
    changes = [f"{path}={value}" for path, value in (given_ | settings).items()]
    spec = validation.parse(overrides.apply(yaml12.load_file(TINY), changes)).spec
    return Drawer(spec, engines or Engines(), PROMPTS, score, lambda: None)


def dynamic(rounds: int) -> dict[str, Any]:
    return {"algorithm.dynamicSampling": f"{{maxRounds: {rounds}}}"}


async def draw(of: Drawer, cursor: Cursor | None = None) -> Batch:
    return await of.draw(6, cursor or Cursor(seed=1, size=len(PROMPTS)), 5)


def rows(batch: Batch, *, trained: bool) -> list[int]:
    """The prompts of a batch in the order of their ids."""
    return [s.sample.prompt.row for s in (batch.trained if trained else batch.drawn)][::SAMPLES]


async def test_without_dynamic_sampling_every_group_trains() -> None:
    start = Cursor(seed=1, size=len(PROMPTS))
    batch = await draw(drawer(lambda row: False), start)
    taken, after = start.take(PER_STEP)
    assert rows(batch, trained=True) == taken
    assert (batch.cursor, batch.weights_version, batch.figures) == (after, 5, {})
    assert list(batch.trajectories()) == list(range(PER_STEP * SAMPLES))


async def test_groups_of_one_score_are_replaced_by_fresh_prompts() -> None:
    start = Cursor(seed=1, size=len(PROMPTS))
    first, after_first = start.take(PER_STEP)
    second, after_second = after_first.take(2)
    engines = Engines()
    batch = await draw(drawer(lambda row: row not in first[1:3], engines, **dynamic(3)), start)
    assert rows(batch, trained=False) == first + second
    assert rows(batch, trained=True) == [first[0], first[3], *second]
    assert batch.cursor == after_second, "the cursor moves over exactly the prompts that were asked"
    assert batch.figures == {"sampling_rounds": 2.0, "dropped_groups": 2.0, "trained_groups": 4.0}
    assert [[r.id for r in asked] for asked in engines.asked] == [list(range(8)), list(range(8, 12))]
    seeds = [r.seed for asked in engines.asked for r in asked]
    assert len(set(seeds)) == len(seeds), "a replacement has random numbers of its own"


async def test_the_rounds_are_bounded_and_the_step_goes_on_with_what_it_has() -> None:
    first, _ = Cursor(seed=1, size=len(PROMPTS)).take(PER_STEP)
    batch = await draw(drawer(lambda row: row == first[2], **dynamic(2)))
    assert rows(batch, trained=True) == [first[2]]
    assert batch.figures == {"sampling_rounds": 3.0, "dropped_groups": 9.0, "trained_groups": 1.0}


async def test_a_step_without_any_group_is_empty_not_endless() -> None:
    batch = await draw(drawer(lambda row: False, **dynamic(2)))
    assert batch.trained == []
    assert batch.trajectories() == {}
    assert batch.figures == {"sampling_rounds": 3.0, "dropped_groups": 12.0, "trained_groups": 0.0}


@given(st.sets(st.integers(0, 19)), st.integers(1, 4), st.integers(0, 19))
async def test_a_batch_is_full_or_the_rounds_are_spent(dull: set[int], rounds: int, position: int) -> None:
    start = Cursor(seed=3, size=len(PROMPTS), position=position)
    batch = await draw(drawer(lambda row: row not in dull, **dynamic(rounds)), start)
    asked = rows(batch, trained=False)
    assert (asked, batch.cursor) == start.take(len(asked)), "in the data's order, without a gap"
    assert rows(batch, trained=True) == [row for row in asked if row not in dull]
    used = len(batch.trained) // SAMPLES
    assert used == PER_STEP or (used < PER_STEP and batch.figures["sampling_rounds"] == 1 + rounds)


async def test_with_one_step_every_sample_carries_log_probabilities() -> None:
    one_step = {"rollout.overlap": "OneStep", "rollout.promptsPerStep": 16}
    ahead = await drawer(lambda row: True, **one_step).draw(7, Cursor(seed=1, size=20), 5)
    assert all(t.logprobs for t in ahead.trajectories().values())
    assert ahead.figures == {"staleness": 1.0}
    usual = await drawer(lambda row: True, **{"rollout.promptsPerStep": 16}).draw(6, Cursor(seed=1, size=20), 5)
    assert sum(t.logprobs is not None for t in usual.trajectories().values()) == 16


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            ["algorithm.dynamicSampling={maxRounds: 0}"],
            "spec.algorithm.dynamicSampling.maxRounds is 0: it should be greater than or equal to 1",
        ),
        (
            ["algorithm.dynamicSampling={maxRounds: 3}", "rollout.samplesPerPrompt=1"],
            "spec.algorithm.dynamicSampling needs rollout.samplesPerPrompt of at least 2, not 1: one sample has no "
            "variance",
        ),
        (
            ["rollout.overlap=OneStep", "placement={colocated: {}}"],
            "spec.rollout.overlap is OneStep, which needs placement.disaggregated: colocated engines sleep while "
            "their GPUs train",
        ),
        (["rollout.overlap=TwoSteps"], "spec.rollout.overlap is 'TwoSteps': it should be 'None' or 'OneStep'"),
    ],
)
def test_a_fault_is_a_sentence(settings: list[str], sentence: str) -> None:
    assert validation.faults(overrides.apply(yaml12.load_file(TINY), settings)) == [sentence]
