"""The figures of an evaluation: hand-counted, and against their definitions."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.evaluation import metrics
from simplerl_trainer.evaluation.metrics import Answer, Group


def answer(question: int, verdict: str, extracted: str = "", **more: object) -> Answer:
    return Answer(question, verdict, extracted, **{"tokens": 10, "finish": "Stop", **more})  # type: ignore[arg-type]


TWO_QUESTIONS = [
    answer(0, "equal", "4", level="1", subject="Algebra"),
    answer(0, "different", "5", level="1", subject="Algebra", tokens=30),
    answer(0, "equal", "4.0", level="1", subject="Algebra"),
    answer(0, "timeout", level="1", subject="Algebra"),
    answer(1, "different", "7", level="2", subject="Geometry", finish="Length"),
    answer(1, "no_answer", level="2", subject="Geometry", finish="Length"),
    answer(1, "failed", level="2", subject="Geometry", finish="Unasked", tokens=0),
    answer(1, "bad_gold", "7", level="2", subject="Geometry"),
]


def test_every_sample_counts_whatever_became_of_it() -> None:
    found = metrics.figures(TWO_QUESTIONS)
    assert (found.questions, found.samples, found.right, found.accuracy) == (2, 8, 2, 0.25)
    assert (found.truncated, found.no_answer, found.timeouts, found.bad_golds, found.failed) == (2, 1, 1, 1, 1)
    assert found.mean_tokens == pytest.approx(90 / 7), "a sample that was not drawn has no length"


def test_accuracy_of_several_samples_is_the_mean_over_all_of_them_not_the_first() -> None:
    # trainer.md section 1: v0's `acc` is the first sample's alone
    found = metrics.figures(
        [answer(0, "equal"), answer(0, "different"), answer(0, "different"), answer(0, "different")]
    )
    assert found.accuracy == 0.25


def test_levels_and_subjects_have_figures_of_their_own() -> None:
    found = metrics.figures(TWO_QUESTIONS)
    assert found.levels == {"1": Group(1, 0.5), "2": Group(1, 0.0)}
    assert found.subjects == {"Algebra": Group(1, 0.5), "Geometry": Group(1, 0.0)}
    assert metrics.figures([answer(0, "equal")]).levels == {}, "questions without a level have no group"


def test_the_document_holds_all_of_it() -> None:
    document = metrics.figures(TWO_QUESTIONS).document()
    assert document["passAt"] == {"1": 0.25, "2": pytest.approx(5 / 12), "4": 0.5}
    assert document["majorityAt"] == {"1": 0.5, "2": 0.5, "4": 0.5}
    assert document["byLevel"] == {"1": {"questions": 1, "accuracy": 0.5}, "2": {"questions": 1, "accuracy": 0.0}}
    low, high = document["interval"]
    assert 0.0 <= low <= 0.25 <= high <= 0.5
    assert metrics.figures([]).document()["accuracy"] is None, "nan is no JSON"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(1, [1], id="one"),
        pytest.param(4, [1, 2, 4], id="a power of two"),
        pytest.param(6, [1, 2, 4, 6], id="another number"),
    ],
)
def test_k_takes_powers_of_two_and_all_samples(samples: int, expected: list[int]) -> None:
    assert metrics.ks(samples) == expected


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(case: tuple[int, int, int]) -> None:
    n, right, k = case
    subsets = list(itertools.combinations([i < right for i in range(n)], k))
    assert metrics.pass_at(n, right, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@pytest.mark.parametrize(
    ("answers", "right"),
    [
        pytest.param([("equal", "4"), ("different", "5"), ("equal", "4")], True, id="the commonest is right"),
        pytest.param([("equal", "1/2"), ("different", "5"), ("equal", "0.5")], True, id="right in two spellings"),
        pytest.param([("equal", "4"), ("different", "5"), ("different", " 5 ")], False, id="the commonest is wrong"),
        pytest.param([("equal", "4"), ("different", "5")], True, id="equally common: the first one is right"),
        pytest.param([("different", "5"), ("equal", "4")], False, id="equally common: the first one is wrong"),
        pytest.param([("no_answer", ""), ("no_answer", ""), ("equal", "4")], True, id="no answer has no voice"),
        pytest.param([("no_answer", ""), ("failed", "")], False, id="nobody answers"),
        pytest.param(
            [("different", "5"), ("different", "6"), ("equal", "4"), ("equal", "4")], True, id="wrong ones differ"
        ),
        pytest.param(
            [("equal", "4"), ("different", "1/2"), ("equal", "4"), ("different", "0.5"), ("different", "\\frac12")],
            False,
            id="wrong in three spellings",
        ),
        pytest.param(
            [("different", "\\sqrt{8}"), ("equal", "4"), ("different", "2\\sqrt2")], False, id="equal by algebra"
        ),
        pytest.param(
            [("different", "x^2 < 4"), ("equal", "4"), ("different", "-2 < x < 2"), ("equal", "4")],
            True,
            id="inequalities",
        ),
    ],
)
def test_the_majority_of_answers(answers: list[tuple[str, str]], right: bool) -> None:
    assert metrics.majority(metrics.voices([answer(0, *a) for a in answers])) is right


def test_the_interval_is_as_wide_as_the_normal_one() -> None:
    generator = random.Random(3)
    questions = [(int(generator.random() < 0.3), 1) for _ in range(1000)]
    p = sum(r for r, _ in questions) / 1000
    low, high = metrics.interval(questions, seed=0)
    half = 1.96 * math.sqrt(p * (1 - p) / 1000)
    assert (low, high) == (pytest.approx(p - half, abs=0.004), pytest.approx(p + half, abs=0.004))
    assert metrics.interval(questions, seed=0) == (low, high), "the same seed, the same interval"


def test_samples_of_one_question_do_not_count_as_many_questions() -> None:
    alone = metrics.interval([(i % 2, 1) for i in range(40)], seed=0)
    copied = metrics.interval([(16 * (i % 2), 16) for i in range(40)], seed=0)
    assert copied == alone


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)).map(lambda c: (min(c), c[1])), min_size=1, max_size=20))
def test_the_interval_holds_the_mean_between_0_and_1(questions: list[tuple[int, int]]) -> None:
    low, high = metrics.interval(questions, seed=1)
    assert 0.0 <= low <= high <= 1.0
