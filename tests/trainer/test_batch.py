"""Batches: dynamic sampling keeps what varies, asks fresh prompts for the rest, and never for ever."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
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
    assert list(batch.trajectories(SAMPLES)) == list(range(PER_STEP * SAMPLES))


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
    assert batch.trajectories(SAMPLES) == {}
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
    assert all(t.logprobs for t in ahead.trajectories(SAMPLES).values())
    assert ahead.figures == {"staleness": 1.0}
    usual = await drawer(lambda row: True, **{"rollout.promptsPerStep": 16}).draw(6, Cursor(seed=1, size=20), 5)
    assert sum(t.logprobs is not None for t in usual.trajectories(SAMPLES).values()) == 16


class Lengthy(Engines):
    """Every third response is cut at maxNewTokens, which is 8; the others have 5 tokens."""

    async def generate(self, requests: Sequence[Request]) -> AsyncGenerator[Finished]:
        for r in requests:
            cut = r.id % 3 == 0
            yield Finished(r.id, (1,) * (8 if cut else 5), Finish.LENGTH if cut else Finish.STOP, None, 5)


async def test_truncated_tokens_are_not_counted() -> None:
    """Fault 3 (TRL#6439): what was cut and is masked reaches no rank, so that no denominator holds it; its score is
    reported."""
    masked = {"algorithm.maskTruncated": "true"}
    batch = await draw(drawer(lambda row: True, Lengthy(), **masked))
    assert list(batch.trajectories(SAMPLES)) == [1, 2, 4, 5, 7]
    assert [s.sample.id for s in batch.drawn] == list(range(8))
    assert list((await draw(drawer(lambda row: True, Lengthy()))).trajectories(SAMPLES)) == list(range(8))


async def test_nan_at_a_masked_place_does_not_leak() -> None:
    """Fault 4 (OpenRLHF#1240, SkyRL#1635): a mask that multiplies lets nan x 0 through; ours leaves the sample out."""

    async def score(samples: Sequence[Sample]) -> Sequence[Score]:
        return [Score(float("nan") if s.finish is Finish.LENGTH else 1.0, "equal") for s in samples]

    of = replace(drawer(lambda row: True, Lengthy(), **{"algorithm.maskTruncated": "true"}), scorer=score)
    batch = await draw(of)
    assert [t.score for t in batch.trajectories(SAMPLES).values()] == [1.0] * 5


async def test_the_samples_of_a_prompt_are_one_group_whichever_of_them_train() -> None:
    batch = await draw(drawer(lambda row: True, Lengthy(), **{"algorithm.maskTruncated": "true"}))
    assert [t.group for t in batch.trajectories(SAMPLES).values()] == [0, 1, 2, 2, 3]


async def test_a_group_varies_by_what_trains_of_it() -> None:
    """Of prompts 0, 1 and 3 one sample of two is masked: what is left has no variance."""
    settings = {"algorithm.maskTruncated": "true", **dynamic(1)}
    batch = await draw(drawer(lambda row: True, Lengthy(), **settings))
    assert {s.sample.id // SAMPLES for s in batch.trained} == {2, 5}
    assert batch.figures == {"sampling_rounds": 2.0, "dropped_groups": 5.0, "trained_groups": 2.0}


async def test_long_responses_lose_a_part_of_their_score() -> None:
    settings = {"algorithm.overlong": "{bufferTokens: 4, penalty: 2}"}
    batch = await draw(drawer(lambda row: False, Lengthy(), **settings))
    penalties = [-2.0 if i % 3 == 0 else -0.5 for i in range(8)]
    assert [s.score.parts["overlong"] for s in batch.drawn] == penalties
    assert [s.score.value for s in batch.drawn] == [1 + p for p in penalties]
    assert [t.score for t in batch.trajectories(SAMPLES).values()] == [1 + p for p in penalties]


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
