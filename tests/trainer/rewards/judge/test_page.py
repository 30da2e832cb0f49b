"""What docs/judge.md says of answers is so."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simplerl_trainer.cli import app
from simplerl_trainer.rewards.judge import judge, reading

PAGE = (Path(__file__).parents[4] / "docs/judge.md").read_text("utf-8")
LINES = [line for line in PAGE.splitlines() if line.startswith("| `")]
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in LINES]


def code(cell: str) -> str:
    return cell.strip("`").replace("\\|", "|")


@pytest.mark.parametrize("row", [r for r in ROWS if len(r) == 4], ids=lambda r: " ".join(r[:3]))
def test_an_answer_gets_the_verdict_of_the_page(row: list[str]) -> None:
    answer, gold, verdict, _ = row
    assert judge(f"\\boxed{{{code(answer)}}}", code(gold)).verdict == verdict


VERDICTS = {f"`{v}`" for v in ("equal", "different", "no_answer", "bad_gold", "timeout")}
READINGS = [r for r in ROWS if len(r) == 2 and r[0] not in VERDICTS]


@pytest.mark.parametrize("row", READINGS, ids=lambda r: r[0])
def test_an_answer_is_read_as_on_the_page(row: list[str]) -> None:
    response, answer = row
    assert reading.response(code(response)).text == ("" if answer == "none" else code(answer))


def test_the_page_has_its_tables() -> None:
    assert len(READINGS) == 14
    assert len([r for r in ROWS if len(r) == 4]) == 48


def test_grade_prints_what_the_page_says() -> None:
    given, printed, *_ = re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    result = CliRunner().invoke(app, ["grade", "-"], input=given)
    assert result.stdout == printed
