"""What the judge's verdicts are worth in the math reward."""

import pytest

from simplerl_api.spec.rewards import MathReward
from simplerl_trainer.rewards.judge import Judgement, Tolerance, judge
from simplerl_trainer.rewards.math import outcome, quick_outcome, score
from simplerl_trainer.rewards.outcome import Verdict

RULES = MathReward()
SIMPLERL = MathReward(correct=1.0, wrong=-0.5, unboxed=-1.0)


@pytest.mark.parametrize(
    ("response", "gold", "expected", "verdict"),
    [
        pytest.param(r"\boxed{4}", "4", 1.0, "equal", id="right in a box"),
        pytest.param(r"\boxed{5}", "4", -0.5, "different", id="wrong in a box"),
        pytest.param(r"\boxed{}", "4", -0.5, "no_answer", id="an empty box"),
        pytest.param("4", "4", -1.0, "no_answer", id="right without a box"),
        pytest.param("", "4", -1.0, "no_answer", id="nothing"),
        pytest.param("4", "", -1.0, "bad_gold", id="no gold answer, no box"),
        pytest.param(r"\boxed{4}", "", -0.5, "bad_gold", id="no gold answer"),
        pytest.param(r"\boxed{10^{10^{10}}}", "4", -0.5, "timeout", id="too large to be worked out"),
    ],
)
def test_simplerl_scores(response: str, gold: str, expected: float, verdict: str) -> None:
    found = outcome(response, gold, SIMPLERL)
    assert (found.score, found.verdict) == (expected, verdict)
    assert score(judge(response, gold), SIMPLERL) == expected


def test_without_a_rule_for_boxes_an_answer_needs_none() -> None:
    assert outcome("so it is 4.", "4", RULES).score == 1.0


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.EQUAL])
def test_whatever_is_not_equal_scores_as_wrong(verdict: Verdict) -> None:
    assert score(Judgement(verdict), MathReward(correct=2.0, wrong=-3.0)) == -3.0


def test_the_quick_way_leaves_to_the_slow_one_what_sympy_must_solve() -> None:
    response = r"\boxed{x^2 < 4}"
    assert quick_outcome(response, "(-2, 2)", RULES) is None
    assert outcome(response, "(-2, 2)", RULES).verdict is Verdict.EQUAL
    assert quick_outcome(r"\boxed{x < 4}", r"(-\infty, 4)", RULES) == outcome(r"\boxed{x < 4}", r"(-\infty, 4)", RULES)


def test_a_tolerance_is_part_of_the_case() -> None:
    assert outcome(r"\boxed{1.61}", "1.6", RULES).score == 0.0
    assert outcome(r"\boxed{1.61}", "1.6", RULES, Tolerance(relative=1e-2)).score == 1.0
