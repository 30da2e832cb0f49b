"""What is said of a reward's code without running it."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.reward_code import ARGUMENTS, fault

FINE = {
    "a function": "def score(response, answer): return 1.0",
    "all arguments": f"def score(*, {', '.join(ARGUMENTS)}): return 1.0",
    "an async function": "async def score(response): return 1.0",
    "any keyword": "def score(**given): return 1.0",
    "a default of one's own": "def score(response, weight=1.0, *, other=2): return weight",
    "a name that is imported": "from elsewhere import judge as score",
    "a name that is assigned": "def judge(response): return 1.0\nscore = judge",
    "a name with a type": "score: object = lambda response: 1.0",
    "a class": "class score:\n    def __new__(cls, response): return 1.0",
    "a star import may hold it": "from elsewhere import *",
    "a condition may define it": "try:\n    import fast\nexcept ImportError:\n    def score(response): return 1.0",
    "a decorator may change the arguments": "@wrapped\ndef score(completion): return 1.0",
    "what Windows' Notepad saves": "\ufeffdef score(response): return 1.0",
    "the last definition counts": "def score(a): return 1.0\ndef score(response): return 1.0",
}


@pytest.mark.parametrize("source", FINE.values(), ids=FINE)
def test_code_that_may_work_has_no_fault(source: str) -> None:
    assert fault(source, "score") is None


FAULTY = {
    "no Python": ("def score(:", "is not Python (invalid syntax in line 1): correct it"),
    "a null byte": ("score = 1\0", "is not Python (source code string cannot contain null bytes): correct it"),
    "another function": (
        "import os.path\ndef judge(): ...\n_hidden = 1",
        "defines no function score (it defines judge): add it, or name another one",
    ),
    "nothing": ("# later", "defines no function score (it defines nothing): add it, or name another one"),
    "a parameter that is not given": (
        "def score(response, gold): return 1.0",
        "defines score with the parameter gold, which is not one of prompt, question, response, answer, record, "
        "truncated",
    ),
    "a keyword that is not given": (
        "def score(response, *, gold): return 1.0",
        "defines score with the parameter gold, which is not one of prompt, question, response, answer, record, "
        "truncated",
    ),
    "a position": (
        "def score(response, /): return 1.0",
        "defines score with the positional parameter response: it is called by keywords alone",
    ),
    "the last definition counts": (
        "def score(response): return 1.0\ndef score(a): return 1.0",
        "defines score with the parameter a, which is not one of prompt, question, response, answer, record, truncated",
    ),
}


@pytest.mark.parametrize(("source", "sentence"), FAULTY.values(), ids=FAULTY)
def test_code_that_cannot_work_has_one(source: str, sentence: str) -> None:
    assert fault(source, "score") == sentence


@given(st.text())
def test_any_text_gets_an_answer(source: str) -> None:
    said = fault(source, "score")
    assert said is None or said.startswith(("is not Python (", "defines "))


@given(st.lists(st.sampled_from(ARGUMENTS), unique=True), st.booleans())
def test_any_choice_of_the_arguments_is_fine(names: list[str], by_keyword: bool) -> None:
    star = "*, " if by_keyword and names else ""
    source = f"def score({star}{', '.join(names)}): return 1.0"
    ast.parse(source)
    assert fault(source, "score") is None
