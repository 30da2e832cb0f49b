"""reasoning-gym's own scorers, and several rewards together."""

import pytest

from simplerl_api.spec.data import Fields, Questions, ReasoningGym
from simplerl_api.spec.rewards import MathReward, Reward, TaskReward
from simplerl_trainer.data.questions import load
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Verdict
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.task import Scorers, extract

EXTRACTED = {
    "<answer> 7 </answer>": "7",
    "<answer>1</answer> no, <answer>2\n3</answer>.": "2\n3",
    r"\boxed{8} but <answer>7</answer>": "7",
    r"so \boxed{\frac{1}{2}}.": r"\frac{1}{2}",
    " 42 ": "42",
    "<answer></answer>": "",
    "<answer>7": "<answer>7",
}


@pytest.mark.parametrize(("response", "answer"), EXTRACTED.items())
def test_the_answer_in_a_response(response: str, answer: str) -> None:
    assert extract(response) == answer


GYM = ReasoningGym(dataset="countdown", size=3, seed=5)


def entry(gym: ReasoningGym = GYM) -> Case:
    question = load(Questions(reasoning_gym=gym), Fields(), "data.train", answers=False)[0]
    return Case("", question.answer, question=question.question, record=question.record, gym=question.gym)


def test_an_answer_other_than_the_data_set_s_is_right_where_its_scorer_says_so() -> None:
    case, scorers = entry(), Scorers()
    right = scorers.score(f"<answer>{case.record['metadata']['expression']}</answer>", case)
    assert (right.score, right.verdict, right.why) == (1.0, Verdict.EQUAL, "")
    turned = scorers.score(f"<answer>({case.record['metadata']['expression']})</answer>", case)
    assert turned.verdict is Verdict.EQUAL
    wrong = scorers.score("<answer>1 + 1</answer>", case)
    assert wrong.verdict is Verdict.DIFFERENT
    assert wrong.why == f"the scorer of countdown gave {wrong.score:.4g}"
    assert scorers.score(" ", case).verdict is Verdict.NO_ANSWER


def test_a_scorer_that_fails_is_a_counted_failure() -> None:
    gym = ReasoningGym(dataset="propositional_logic", size=1)
    found = Scorers().score("7", Case("", "", record={"metadata": None, "answer": None}, gym=gym))
    assert (found.score, found.verdict) == (0.0, Verdict.FAILED)
    assert found.why.startswith("the scorer of propositional_logic: ")


async def test_rewards_of_several_kinds_add_up_by_their_weights_and_the_first_that_judges_gives_the_verdict() -> None:
    gym = ReasoningGym(dataset="basic_arithmetic", size=1, seed=1)
    case = entry(gym)
    rewards = [
        Reward(name="own", weight=2.0, task=TaskReward()),
        Reward(name="sum", weight=0.5, math=MathReward(correct=1.0, wrong=-1.0)),
    ]
    responses = [case.answer, "the answer is none", f"\\boxed{{{case.answer}}}"]
    async with Scorer(rewards, None, processes=1) as scorer:
        found = await scorer.score_cases([Case(r, case.answer, record=case.record, gym=case.gym) for r in responses])
    assert [s.parts["sum"] for s in found] == [1.0, -1.0, 1.0]
    assert [s.parts["own"] for s in found] == pytest.approx([1.0, 0.0, 1.0], abs=0.05)
    for score in found:
        assert score.value == pytest.approx(2 * score.parts["own"] + 0.5 * score.parts["sum"])
    assert [s.verdict for s in found] == ["equal", "different", "equal"]
    assert found[1].why.startswith("own: the scorer of basic_arithmetic gave ")
