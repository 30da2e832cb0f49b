"""Answers judged against gold ones: the policy of docs/judge.md, clause by clause."""

import re

import pytest
from tests.trainer.rewards.judge import pairs

from simplerl_trainer.rewards.judge import judge

TABLES = {name.lower(): text for name, text in vars(pairs).items() if name.isupper()}
PAIRS = [
    pytest.param(answer, gold, sign == "==", id=f"{table}: {line}")
    for table, text in TABLES.items()
    for line in text.strip("\n").splitlines()
    for answer, sign, gold in [re.split(r"  (==|!=)  ", line)]
]


@pytest.mark.parametrize(("answer", "gold", "equal"), PAIRS)
def test_an_answer_against_a_gold_one(answer: str, gold: str, equal: bool) -> None:
    found = judge(f"We get $\\boxed{{{answer}}}$.", gold)
    assert (found.verdict, found.extracted) == ("equal" if equal else "different", answer), found.why
    assert bool(found.why) != equal


def test_the_table_is_large_and_both_verdicts_are_about_equally_often() -> None:
    equal = sum(bool(p.values[2]) for p in PAIRS)
    assert len(PAIRS) >= 400
    assert 0.4 < equal / len(PAIRS) < 0.6, (equal, len(PAIRS))
    assert len({p.id for p in PAIRS}) == len(PAIRS)
