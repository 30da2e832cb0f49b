"""The operator's page: a line for each phase and for each reason, in the words of the code."""

import ast
import inspect
import itertools
import re
from pathlib import Path
from types import ModuleType

import pytest

from simplerl_api import failures
from simplerl_api.failures import FailureReason
from simplerl_api.status import Phase
from simplerl_operator.decide import reasons, retries
from simplerl_operator.decide.reasons import Reason

PAGE = (Path(__file__).parents[2] / "docs/operator.md").read_text("utf-8")


def sentences(module: ModuleType, name: str) -> dict[str, str]:
    """The docstrings of an enum's members, by their values."""
    tree = ast.parse(inspect.getsource(module))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name).body
    found = {}
    for member, text in itertools.pairwise(body):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(member.value, ast.Constant)
            found[str(member.value.value)] = " ".join(str(text.value.value).split())
    return found


ROWS = sentences(reasons, "Reason") | sentences(failures, "FailureReason")


def test_every_reason_has_a_sentence() -> None:
    assert set(ROWS) == {*Reason, *FailureReason}


@pytest.mark.parametrize("reason", ROWS)
def test_the_page_has_a_line_for_each_reason(reason: str) -> None:
    ends = "fails" if reason in retries.FINAL else "same pods" if reason in retries.IN_PLACE else ""
    table = PAGE[PAGE.index("## Reasons") :].splitlines()
    line = next((line for line in table if line.startswith(f"| `{reason}` |")), "")
    assert line == f"| `{reason}` | {ROWS[reason]} | {ends} |".replace("|  |", "| |")


def test_the_page_names_no_other_reason() -> None:
    table = PAGE[PAGE.index("## Reasons") :]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(ROWS)


def test_the_page_has_a_line_for_each_phase() -> None:
    table = PAGE[PAGE.index("## Phases") : PAGE.index("## Attempts")]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(Phase)
