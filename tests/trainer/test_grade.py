"""`simplerl grade`: verdicts, the summary and exit codes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.rewards.judge.test_hostile import HOSTILE
from typer.testing import CliRunner

from simplerl_trainer.cli import app

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"
LINES = [
    {"response": "so it is \\boxed{\\frac{1}{2}}", "answer": "0.5"},
    {"response": "\\boxed{3}", "answer": 4},
    {"response": "I do not know", "answer": "4"},
]
PYTHON = """
def score(*, response, answer, record, truncated):
    if response == "raise":
        raise ValueError("no such response")
    return float(record["bonus"]) + len(response) - 10 * truncated
"""


def grade(file: Path, *words: str | Path) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(app, ["grade", str(file), "-o", "json", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def written(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    file = folder / "responses.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def test_each_line_has_a_verdict_and_all_have_a_summary(tmp_path: Path) -> None:
    rewards = "rewards=[{name: sum, math: {}}]"
    code, (first, second, third, last) = grade(written(tmp_path, LINES), "--rewards", TINY, "--set", rewards)
    assert code == 0
    assert (first["line"], first["score"], first["verdict"]) == (1, 1.0, "equal")
    assert (second["score"], second["verdict"], second["extracted"]) == (0.0, "different", "3")
    assert (third["line"], third["score"], third["verdict"]) == (3, 0.0, "no_answer")
    assert last["summary"] == {
        "lines": 3,
        "score": pytest.approx(1 / 3),
        "accuracy": pytest.approx(1 / 3),
        "verdicts": {"equal": 1, "different": 1, "no_answer": 1},
        "notJudged": 0,
    }


def test_the_rewards_of_a_job_judge_with_their_weights(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(PYTHON)
    rewards = f"rewards=[{{name: a, weight: 2, math: {{}}}}, {{name: b, python: {{file: {tmp_path}/score.py}}}}]"
    rows = [
        {"response": "\\boxed{4}", "answer": "4", "bonus": 1},
        {"response": "raise", "answer": "4", "bonus": 1},
        {"response": "\\boxed{4}", "answer": "4", "bonus": 1, "finish": "Length"},
    ]
    code, lines = grade(written(tmp_path, rows), "--rewards", TINY, "--set", rewards)
    assert code == 3, "one could not be judged"
    assert [line["score"] for line in lines[:3]] == [2 * 1 + 10, 0, 2 * 1 + 10 - 10]
    assert lines[1]["rewards"] == {"a": 0.0, "b": 0.0}
    assert "ValueError: no such response" in lines[1]["why"]
    assert lines[3]["summary"]["notJudged"] == 1


def test_the_samples_of_a_run_can_be_graded_again(tmp_path: Path) -> None:
    row = {"id": 0, "question": "Calculate 1 + 2.", "answer": "3", "response": "3", "tokens": 2, "finish": "Stop",
           "score": 1.0, "verdict": "equal", "extracted": "3", "why": "", "rewards": {"sum": 1.0}}  # fmt: skip
    code, lines = grade(written(tmp_path, [row]), "--rewards", TINY)
    assert code == 0
    assert {k: lines[0][k] for k in ("score", "verdict", "extracted", "rewards")} == {
        k: row[k] for k in ("score", "verdict", "extracted", "rewards")
    }


def judged(rows: Sequence[dict[str, Any]], *words: str) -> tuple[list[dict[str, Any]], str]:
    """What `simplerl grade -` says of rows on standard input, on standard output and on standard error."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    result = CliRunner().invoke(app, ["grade", "-", *words], input=text)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_the_judge_gives_a_verdict_to_each_line() -> None:
    rows = [
        {"id": "a", "response": "so \\boxed{\\frac{1}{2}}", "gold": 0.5},
        {"id": 7, "response": "\\boxed{3}", "gold": "$4$"},
        {"response": "I do not know", "gold": "4"},
        {"response": "\\boxed{4}", "gold": "2+2=4\n#### 4"},
        {"response": "\\boxed{4}", "gold": "\\frac{4}{"},
        {"response": "\\boxed{1.61}", "gold": "1.6", "tolerance": 0.01},
        {"response": "\\boxed{4.3}", "gold": "4.2", "tolerance": {"absolute": 0.1}},
        {"response": "\\boxed{1.61}", "gold": "1.6"},
        {"response": "\\boxed{10^{10^{10}}}", "gold": "1"},
        {"response": "\\boxed{x^{60}+x^7-3x+1 > 0}", "gold": "x > 1"},
    ]
    lines, summary = judged(rows, "--timeout", "1")
    assert [(line["id"], line["verdict"], line["extracted"]) for line in lines] == [
        ("a", "equal", "\\frac{1}{2}"), (7, "different", "3"), (3, "no_answer", ""), (4, "equal", "4"),
        (5, "bad_gold", "4"), (6, "equal", "1.61"), (7, "equal", "4.3"), (8, "different", "1.61"),
        (9, "timeout", "10^{10^{10}}"), (10, "timeout", ""),
    ]  # fmt: skip
    assert [bool(line["why"]) for line in lines] == [line["verdict"] != "equal" for line in lines]
    assert lines[1]["why"] == "expected $4$"
    assert summary == ("10 lines: 4 equal, 2 different, 2 timeout, 1 no_answer, 1 bad_gold; accuracy 0.4\n")


@pytest.mark.parametrize(
    ("response", "gold", "verdict"),
    [
        ("12345678901234567890.5", "12345678901234567890.5", "equal"),
        ("12345678901234567890.25", "12345678901234567890.5", "different"),
        ("0.1000000000000000055", "0.1", "different"),
        ("100000", "1E5", "equal"),
        ("1" + "0" * 400, "1" + "0" * 400, "equal"),
        ("3", "1" + "0" * 5000, "timeout"),
        ("3", "3.00", "equal"),
    ],
    ids=lambda text: text[:30],
)
def test_a_gold_number_is_what_is_written(response: str, gold: str, verdict: str) -> None:
    result = CliRunner().invoke(app, ["grade", "-"], input=f'{{"response": "{response}", "gold": {gold}}}\n')
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verdict"] == verdict


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "training.steps=3"], "Invalid value for --set: it replaces a field of the job of --rewards"),
        (["--rewards", str(TINY), "--timeout", "9"], "Invalid value for --timeout: the rewards of --rewards have"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(tmp_path: Path, words: Sequence[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["grade", str(written(tmp_path, LINES)), *words], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_file_is_judged_as_standard_input_is(tmp_path: Path) -> None:
    file = written(tmp_path, [{"response": "4\u2028", "gold": 4}])
    result = CliRunner().invoke(app, ["grade", str(file)])
    assert json.loads(result.stdout) == {"id": 1, "verdict": "equal", "extracted": "4", "why": ""}
    assert result.stderr == "1 line: 1 equal; accuracy 1\n"


def test_hostile_lines_get_their_verdicts_in_any_order_and_end_no_run() -> None:
    rows = [{"id": name, "response": f"\\boxed{{{text}}}", "gold": "4"} for name, text in HOSTILE.items()]
    rows += [{"id": f"{name} as gold", "response": "4", "gold": text} for name, text in HOSTILE.items()]
    start = time.monotonic()
    lines, _ = judged(rows, "--timeout", "5")
    again, _ = judged(rows[::-4], "--timeout", "5")
    assert time.monotonic() - start < 120
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    assert again == lines[::-4]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["grade", str(tmp_path / "none.jsonl")])
    sentence = f"{tmp_path}/none.jsonl does not exist: name a file of JSON Lines, or - for standard input\n"
    assert (result.exit_code, result.output) == (1, sentence)
    result = CliRunner().invoke(app, ["grade", str(tmp_path)])
    assert (result.exit_code, result.output) == (
        1, f"{tmp_path} cannot be read (Is a directory): name a file of JSON Lines\n"
    )  # fmt: skip


TOLERANCE = 'under tolerance: give a number of at least 0, which is relative, or {"absolute": 0.1}'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("", "holds no line: give an object with response and gold on each", id="an empty file"),
        pytest.param('{"response": "3"', "line 1 is not JSON in UTF-8", id="half a line"),
        pytest.param(
            '{"response": "3", "gold": 3, "gold": 4}', 'line 1 holds the key "gold" twice: leave one of the two out',
            id="a key twice",
        ),
        pytest.param("[1]", "line 1 is not an object: give one with response and gold on each line", id="a list"),
        pytest.param('{"gold": "3"}', "line 1 has no response: give response and gold on each line", id="no response"),
        pytest.param('{"response": "3"}', "line 1 has no gold: give response and gold on each line", id="no gold"),
        pytest.param(
            '{"response": null, "gold": 1}', "line 1 holds null under response: give a text or a number", id="null"
        ),
        pytest.param(
            '\n{"response": "3", "gold": ["3"]}', 'line 2 holds ["3"] under gold: give a text or a number', id="a list"
        ),
        pytest.param('{"response": "3", "gold": true}', "line 1 holds true under gold: give a", id="a truth"),
        pytest.param('{"response": "3", "gold": NaN}', "line 1 holds NaN under gold: give a", id="not a number"),
        pytest.param('{"response": "3", "gold": [3]}', "line 1 holds [3] under gold: give a", id="a list of numbers"),
        pytest.param('{"id": NaN, "response": "3", "gold": 3}', "line 1 holds NaN under id, which no", id="no id"),
        pytest.param('{"id": [-Infinity], "response": "3", "gold": 3}', "line 1 holds [-Infinity] under id", id="nor"),
        pytest.param("[" * 100_000, "line 1 is not JSON in UTF-8", id="lists without end"),
        pytest.param('[\n{"response": "3", "gold": 3}\n]', "line 1 is not JSON in UTF-8", id="an array over lines"),
        pytest.param(
            '{"response": "3", "gold": 3, "tolerance": 1e999}', f'line 1 holds "1e999" {TOLERANCE}',
            id="a tolerance that is no number",
        ),
        pytest.param(
            '{"response": "3", "gold": 3, "tolerance": -1}', f"line 1 holds -1 {TOLERANCE}", id="a negative tolerance"
        ),
        pytest.param(
            '{"response": "3", "gold": 3, "tolerance": {"by": 1}}', f'line 1 holds {{"by": 1}} {TOLERANCE}',
            id="a tolerance by another name",
        ),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_graded_exits_with_1_and_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text(content)
    result = CliRunner().invoke(app, ["grade", str(file)])
    assert result.exit_code == 1
    assert result.output.startswith(f"{file} {sentence}")


def test_a_reward_model_is_refused(tmp_path: Path) -> None:
    words = [
        "grade",
        str(written(tmp_path, LINES)),
        "--rewards",
        str(TINY),
        "--set",
        "rewards[1]={name: m, model: {path: /m}}",
    ]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.output) == (
        1, "rewards[1].model is a reward model, which only a run's ranks can ask: leave it out here\n"
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_a_table_shows_what_the_terminal_cannot(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text('{"response": "\\\\boxed{\\ud800 \\u221e}", "gold": "3"}\n')
    words = [sys.executable, "-m", "simplerl_trainer.cli", "grade", str(file), "-o", "table"]
    shown = subprocess.run(words, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "\\ud800" in shown.stdout.decode(encoding)


def test_people_see_a_table_and_a_line_of_sums(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["grade", str(written(tmp_path, LINES)), "-o", "table"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "3 lines: 1 equal, 1 different, 1 no_answer; accuracy 0.3333, mean score 0.3333" in result.output
    assert "no_answer" in result.output.splitlines()[5]
