"""Every gold answer of the evaluation sets against itself, in other dialects, and against perturbed copies.

The data lie beside the repository; where they do not, the tests are skipped (SIMPLERL_DATA names another folder).
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simplerl_trainer.rewards.judge import judge, reading

DATA = Path(os.environ.get("SIMPLERL_DATA", Path(__file__).parents[5] / "shared/data")) / "eval"

GOLDS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "gsm8k": lambda row: [row["answer"]],
    "math500": lambda row: [row["answer"], row["solution"]],
    "minerva_math": lambda row: [row["solution"]],
    "olympiadbench": lambda row: [", ".join(row["final_answer"])],
    "aime24": lambda row: [str(row["answer"]), row["solution"]],
    "amc23": lambda row: [str(row["answer"])],
}
"""Where each set has its gold answers: after ####, in the last box, in lists, as numbers."""

UNJUDGED: dict[str, list[str]] = {}
"""Gold answers that cannot be judged, by their set: none today."""


@cache
def golds(name: str) -> list[str]:
    file = DATA / f"{name}.jsonl"
    if not file.exists():
        pytest.skip(f"{file} is not there: set SIMPLERL_DATA to the folder that holds eval/")
    return [gold for line in file.read_text("utf-8").splitlines() for gold in GOLDS[name](json.loads(line))]


def judged(name: str) -> Iterator[tuple[str, str]]:
    """Each gold text that can be judged, and its answer."""
    for gold in golds(name):
        answer = reading.gold(gold)
        if answer not in UNJUDGED.get(name, ()):
            yield gold, answer


EACH = pytest.mark.parametrize("name", GOLDS)


@EACH
def test_the_gold_answers_that_cannot_be_judged_are_these(name: str) -> None:
    bad = [reading.gold(g) for g in golds(name) if judge("\\boxed{0}", g).verdict in ("bad_gold", "timeout")]
    assert bad == UNJUDGED.get(name, [])


def plain(answer: str) -> str:
    """Without what text answers leave out: big brackets, thin space, thousands' commas."""
    found = re.sub(r",\\\\! ?", "", answer.replace("\\left", "").replace("\\right", ""))
    found = re.sub(r"\\dfrac|\\tfrac", r"\\frac", found)
    return found.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+", found) else found


DIALECTS: dict[str, Callable[[str], str]] = {
    "as it is": lambda a: f"\\boxed{{{a}}}",
    "in a sentence": lambda a: f"So, after all this, we get \\[ x \\mapsto \\boxed{{{a}}}. \\] That took 2 steps.",
    "in dollars": lambda a: f"\\boxed{{{a}}}" if "$" in a else f"\\boxed{{${a}$}}",
    "with big fractions": lambda a: f"\\boxed{{{re.sub(r'[^A-Za-z]frac', lambda m: chr(92) + 'dfrac', a)}}}",
    "with a full stop": lambda a: f"\\boxed{{{a}.}}",
    "without big brackets": lambda a: f"\\boxed{{{plain(a)}}}",
    "with signs of Unicode": lambda a: f"\\boxed{{{a.replace('-', chr(0x2212)).replace(chr(92) + 'pi', 'π')}}}",
    "after thinking": lambda a: f"<think>\\boxed{{12345}}</think>\\boxed{{{a}}}<|im_end|>\nUser: \\boxed{{0}}",
}


@EACH
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_gold_answer_is_equal_to_itself(name: str, dialect: str) -> None:
    other = [
        (answer, found.verdict, found.why)
        for gold, answer in judged(name)
        if (found := judge(DIALECTS[dialect](answer), gold)).verdict != "equal"
    ]
    assert other == []


def perturbed(answer: str) -> str | None:
    """The answer with its last number one larger, or its word another; None where it holds neither."""
    numbers = list(re.finditer(r"(?<![\d.])\d+", answer))
    if numbers:
        last = numbers[-1]
        return f"{answer[: last.start()]}{int(last[0]) + 1:0{len(last[0])}d}{answer[last.end() :]}"
    if (word := re.search(r"\\text\s*\{\(?([A-Za-z]+)", answer)) is not None:
        return answer[: word.start(1)] + ("B" if word[1] != "B" else "D") + answer[word.end(1) :]
    return None


@EACH
def test_a_perturbed_gold_answer_is_different(name: str) -> None:
    wrong = [
        (answer, copy)
        for gold, answer in judged(name)
        if (copy := perturbed(answer)) is not None and judge(f"\\boxed{{{copy}}}", gold).verdict == "equal"
    ]
    assert wrong == []


@EACH
def test_a_perturbed_number_is_different_without_a_box_too(name: str) -> None:
    wrong = [
        answer
        for gold, answer in judged(name)
        if re.fullmatch(r"-?[\d,]+(?:\.\d+)?", answer)
        and judge(f"The answer is {perturbed(answer)}.", gold).verdict == "equal"
    ]
    assert wrong == []
