"""Answers to one question sorted by what they say."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trainer.rewards.judge.test_hostile import HOSTILE

from simplerl_trainer.rewards.judge.classes import LONGEST, MOST_COMPARED, classes


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["1/2", "0.5", "\\frac12", "0.50"], [0, 0, 0, 0], id="one number in four forms"),
        pytest.param(["3", "4", " 3 ", "3.0", "5"], [0, 1, 0, 0, 2], id="numbers"),
        pytest.param(["10000", "10,000", "10 000"], [0, 0, 0], id="thousands"),
        pytest.param(["(x+1)^2", "x^2+2x+1", "x^2+1"], [0, 0, 1], id="algebra"),
        pytest.param(["red", "blue", "Red."], [0, 1, 0], id="words"),
        pytest.param(["5 cm", "5 m", "5"], [0, 1, 0], id="units"),
        pytest.param(["1, 2", "2, 1", "1"], [0, 0, 1], id="lists"),
        pytest.param(["((", "))", "(("], [0, 1, 0], id="what cannot be read by its text"),
        pytest.param(["10^{10^{10}}", "9^{9^{9}}", "10^{10^{10}}"], [0, 1, 0], id="what is too large by its text"),
        pytest.param(["x^2 < 4", "-2 < x < 2"], [0, 1], id="what sympy would have to solve by its text"),
        pytest.param(["x" * LONGEST + "+1", "1+" + "x" * LONGEST], [0, 1], id="what is long by its text"),
        pytest.param(
            [*(f"x+{i}" for i in range(MOST_COMPARED + 1)), f"{MOST_COMPARED}+x"],
            [*range(MOST_COMPARED + 1), MOST_COMPARED + 1],
            id="with the first ones only",
        ),
    ],
)
def test_answers_that_say_the_same_are_one_class(answers: list[str], expected: list[int]) -> None:
    assert classes(answers) == expected


@given(st.lists(st.sampled_from(["1/2", "0.5", "2", "x+1", "1+x", "no", "(1,2)", "1, 2", "50%"]), max_size=12))
def test_more_answers_change_no_class(answers: list[str]) -> None:
    whole = classes(answers)
    assert all(classes(answers[:k]) == whole[:k] for k in range(len(answers)))
    assert all(found in range(i + 1) for i, found in enumerate(whole))


def test_hostile_answers_cost_little() -> None:
    short = [text[:LONGEST] for text in HOSTILE.values()]
    start = time.process_time()
    found = classes([*short, *HOSTILE.values()])
    assert time.process_time() - start < 10
    assert classes([*short, *HOSTILE.values()]) == found
