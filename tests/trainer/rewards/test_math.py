"""The judge of one mathematical answer."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplerl_api.spec.rewards import MathReward
from simplerl_trainer.rewards.math import Judgement, Verdict, gold_answer, judge, last_box, quick, score

RULES = MathReward()
SIMPLERL = MathReward(correct=1.0, wrong=-0.5, unboxed=-1.0)

CASES = {
    "a plain number": ("57", "57", "equal", "57"),
    "another number": ("58", "57", "different", "58"),
    "the last of two boxes counts": (r"\boxed{1}, no: \boxed{2}", "2", "equal", "2"),
    "an unclosed box is no box": (r"\boxed{2} and so \boxed{3", "2", "equal", "2"),
    "braces in a box are matched": (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", "equal", r"\frac{1}{2}"),
    "fractions with one beginning differ": (r"\boxed{\frac{1}{3}}", r"\frac{1}{2}", "different", r"\frac{1}{3}"),
    "printed braces are not matched": (r"\boxed{\{1, 2\}}", r"\{1,2\}", "equal", r"\{1, 2\}"),
    "a box in a box": (r"\boxed{\boxed{5}}", "5", "equal", "5"),
    "a fraction is its decimal": (r"\boxed{0.5}", r"\frac{1}{2}", "equal", "0.5"),
    "50 is not 0.5": (r"\boxed{50}", "0.5", "different", "50"),
    "10001 is not 10000": (r"\boxed{10001}", "10000", "different", "10001"),
    "thousands may be set apart": (r"\boxed{1,234}", "1234", "equal", "1,234"),
    "thousands may be set apart in LaTeX": (r"\boxed{1{,}234}", "1234", "equal", "1{,}234"),
    "a tuple is not an interval of lists": (r"\boxed{[1,2]}", "(1,2)", "different", "[1,2]"),
    "words are compared": (r"\boxed{\text{Monday}}", r"\text{Monday}", "equal", r"\text{Monday}"),
    "GSM8K's solution as the answer": (r"\boxed{72}", "48+24 = <<48+24=72>>72 clips\n#### 72", "equal", "72"),
    "GSM8K's answer with thousands": ("70000", "so\n#### 70,000", "equal", "70000"),
    "MATH's solution as the answer": (r"\boxed{x+1}", r"We get $\boxed{1+x}$.", "equal", "x+1"),
    "no box: the last expression": ("2 + 2 is 4, so the answer is 4.", "4", "equal", "4"),
    "no box: the last expression is wrong": ("It is 4, no, 5", "4", "different", "5"),
    "an empty response": ("", "4", "no_answer", ""),
    "an empty box": (r"\boxed{}", "4", "no_answer", ""),
    "words alone": ("I do not know", "4", "no_answer", ""),
    "an empty gold answer": ("4", "#### ", "bad_gold", "4"),
    "leading zeros": ("007", "7", "equal", "007"),
    "minus zero": ("-0", "0", "equal", "-0"),
    "line separators in the text": ("4\u2028", "4", "equal", "4"),
}


@pytest.mark.parametrize(("response", "gold", "verdict", "extracted"), CASES.values(), ids=CASES.keys())
def test_the_judge_says(response: str, gold: str, verdict: str, extracted: str) -> None:
    judgement = judge(response, gold, RULES)
    assert (judgement.verdict, judgement.extracted) == (verdict, extracted)
    assert bool(judgement.why) == (verdict != "equal")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (r"\boxed{4}", 1.0),
        (r"\boxed{5}", -0.5),
        (r"\boxed{}", -0.5),
        ("4", -1.0),
        ("", -1.0),
    ],
    ids=["right in a box", "wrong in a box", "an empty box", "right without a box", "nothing"],
)
def test_simplerl_scores(response: str, expected: float) -> None:
    assert score(judge(response, "4", SIMPLERL), SIMPLERL) == expected


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.EQUAL])
def test_whatever_is_not_equal_scores_as_wrong(verdict: Verdict) -> None:
    assert score(Judgement(verdict), MathReward(correct=2.0, wrong=-3.0)) == -3.0


@pytest.mark.parametrize(
    ("text", "box"),
    [
        (r"\boxed{a}", "a"),
        (r"\boxed {a}", "a"),
        (r"\boxed a", None),
        (r"\boxed{a{b}c}", "a{b}c"),
        (r"\boxed{a", None),
        (r"\boxed{\}}", r"\}"),
        ("", None),
    ],
)
def test_the_last_box(text: str, box: str | None) -> None:
    assert last_box(text) == box


@pytest.mark.parametrize(
    ("gold", "answer"),
    [("72", "72"), ("a #### b\n#### 72 ", "72"), (r"so \boxed{72}.", "72"), (r"\boxed{1} #### 2", "2")],
)
def test_the_gold_answer(gold: str, answer: str) -> None:
    assert gold_answer(gold) == answer


@given(st.text(alphabet="\\boxed{}a ", max_size=60))
def test_a_box_lies_in_its_text(text: str) -> None:
    box = last_box(text)
    assert box is None or "{" + box + "}" in text


NUMBERS = st.one_of(
    st.integers(-(10**14), 10**14).map(str),
    st.integers(-20, 20).map(str),
    st.integers(-(10**12), 10**12).map("{:,}".format),
    st.decimals(-100, 100, places=2).map(str),
    st.decimals(-2, 2, places=6).map(str),
    st.integers(0, 9).map("00{}".format),
)


@given(response=NUMBERS, gold=NUMBERS, same=st.booleans(), boxed=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_quick_way_agrees_with_math_verify(response: str, gold: str, same: bool, boxed: bool) -> None:
    import math_verify

    gold = f"{Decimal(response.replace(',', ''))}" if same else gold
    text = f"\\boxed{{{response}}}" if boxed else response
    found = quick(text, gold, RULES)
    if found is not None:
        reference = math_verify.parse(f"\\boxed{{{gold}}}", parsing_timeout=None)
        target = math_verify.parse(text, parsing_timeout=None)
        assert (found.verdict is Verdict.EQUAL) == math_verify.verify(reference, target, timeout_seconds=None)
        assert found.extracted == response


@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_whole_numbers_are_judged_the_quick_way(number: int) -> None:
    judgement = quick(f"\\boxed{{{number}}}", f"#### {number:,}", RULES)
    assert judgement is not None
    assert judgement.verdict is Verdict.EQUAL
