"""The driver's metrics of a step, in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from simplerl_trainer import metrics
from simplerl_trainer.batch import Batch
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.policy.protocol import Annotation, Update
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

# (length of the response in tokens, finish, score, verdict) of two responses to each of two prompts
Drawn = tuple[int, Finish, float, str]
STOP, LENGTH = Finish.STOP, Finish.LENGTH
MIXED: Sequence[Drawn] = [
    (1, STOP, 1.0, "equal"),
    (3, STOP, 0.0, "different"),
    (8, LENGTH, -1.0, "no_answer"),
    (8, LENGTH, -1.0, "timeout"),
]
ALIKE: Sequence[Drawn] = [
    (2, STOP, 1.0, "equal"),
    (2, STOP, 1.0, "equal"),
    (2, STOP, 0.5, "failed"),
    (2, STOP, 0.5, "bad_gold"),
]
FAILED = {"timeout": ("math",), "failed": ("math", "brief")}
"""Which rewards failed on a response."""


def step(drawn: Sequence[Drawn]) -> list[Scored]:
    """Samples of prompts of 2 and 4 tokens, with their scores."""
    prompts = [Prompt(0, "a", "1", (5, 6)), Prompt(1, "b", "2", (5, 6, 7, 8))]
    return [
        Scored(
            Sample(i, prompts[i // 2], (9,) * length, finish, 0, None),
            Score(value, verdict, parts={"math": value, "brief": 2 * value}, failed=FAILED.get(verdict, ())),
        )
        for i, (length, finish, value, verdict) in enumerate(drawn)
    ]


@pytest.mark.parametrize(
    ("drawn", "name", "value"),
    [
        pytest.param(MIXED, "reward", -0.25, id="the reward is the mean score"),
        pytest.param(MIXED, "reward_std", (2.75 / 4) ** 0.5, id="its deviation is that of the whole step"),
        pytest.param(MIXED, "reward_math", -0.25, id="each reward has its mean"),
        pytest.param(MIXED, "reward_brief", -0.5, id="each reward has its mean, unweighted"),
        pytest.param(MIXED, "accuracy", 0.25, id="accuracy is the share of equal answers"),
        pytest.param(ALIKE, "accuracy", 0.5, id="a failed judge and a bad gold answer are not right"),
        pytest.param(MIXED, "response_length", 5.0, id="lengths are in tokens"),
        pytest.param(MIXED, "response_length_max", 8.0, id="the longest response"),
        pytest.param(MIXED, "prompt_length", 3.0, id="prompts count once for each sample"),
        pytest.param(MIXED, "truncated", 0.5, id="half is cut at maxNewTokens"),
        pytest.param(ALIKE, "truncated", 0.0, id="nothing is cut"),
        pytest.param(MIXED, "zero_variance_groups", 0.5, id="one of two prompts has one score for all responses"),
        pytest.param(ALIKE, "zero_variance_groups", 1.0, id="groups whose scores differ from each other only"),
        pytest.param(MIXED, "scoring_failures", 1.0, id="a judge out of time is a failure"),
        pytest.param(ALIKE, "scoring_failures", 1.0, id="a judge that failed is one, a bad gold answer is not"),
        pytest.param(ALIKE, "scoring_failures_brief", 1.0, id="failures are counted for each reward"),
        pytest.param(MIXED, "scoring_failures_brief", 0.0, id="a reward that did not fail has none"),
    ],
)
def test_of_samples(drawn: Sequence[Drawn], name: str, value: float) -> None:
    assert metrics.of_samples(step(drawn), samples_per_prompt=2)[name] == pytest.approx(value)


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        pytest.param([], {"skipped_updates": 0.0}, id="no optimizer step"),
        pytest.param(
            [Update({"policy_loss": 1.0}, False), Update({"policy_loss": 2.0}, False)],
            {"policy_loss": 1.5, "skipped_updates": 0.0},
            id="a mean over optimizer steps",
        ),
        pytest.param(
            [Update({"ratio_max": 3.0}, False), Update({"ratio_max": 2.0}, False)],
            {"ratio_max": 3.0, "skipped_updates": 0.0},
            id="the greatest of what ends in _max",
        ),
        pytest.param(
            [Update({"ratio_first_deviation": 0.5}, False), Update({"policy_loss": 4.0}, True)],
            {"ratio_first_deviation": 0.5, "policy_loss": 4.0, "skipped_updates": 1.0},
            id="a mean over those steps alone that have the metric; skipped ones are counted",
        ),
    ],
)
def test_of_updates(updates: Sequence[Update], expected: Mapping[str, float]) -> None:
    assert metrics.of_updates(updates) == expected


def batch(drawn: Sequence[Scored], trained: Sequence[Scored]) -> Batch:
    return Batch(3, drawn, trained, Cursor(seed=0, size=8), 2, {"dropped_groups": 1.0})


def test_a_step_has_the_metrics_of_all_its_parts() -> None:
    drawn = step(MIXED)
    of_step = metrics.of_step(batch(drawn, drawn), 2, Annotation({"kl": 0.5}, {}), [Update({"value_loss": 2.0}, False)])
    assert of_step == metrics.of_samples(drawn, 2) | {
        "dropped_groups": 1.0, "kl": 0.5, "value_loss": 2.0, "skipped_updates": 0.0,
    }  # fmt: skip


def test_the_mismatch_is_left_out_where_no_sample_of_the_probe_trains() -> None:
    drawn = step(MIXED)
    probed = [replace(drawn[0], sample=replace(drawn[0].sample, logprobs=(-0.5,))), *drawn[1:]]
    annotation = Annotation({"kl": 0.5, "mismatch_max": float("nan")}, {})
    assert "mismatch_max" in metrics.of_step(batch(probed, probed), 2, annotation, [])
    assert "mismatch_max" not in metrics.of_step(batch(probed, probed[2:]), 2, annotation, [])


def test_a_step_that_trained_nothing_has_the_metrics_of_its_rollout() -> None:
    drawn = step(ALIKE)
    of_step = metrics.of_step(batch(drawn, []), 2, None, [])
    assert of_step == metrics.of_samples(drawn, 2) | {"dropped_groups": 1.0, "skipped_updates": 0.0}
