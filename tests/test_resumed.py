"""Long tests go on where they were cut short."""

from pathlib import Path

import pytest
from tests.resumed import Resumed

pytest_plugins = ["pytester"]

CASES = """
import pathlib
import pytest

@pytest.mark.parametrize("n", range(3))
def test_case(n):
    with pathlib.Path("ran").open("a") as file:
        file.write(f"{n}")
    assert n != 1 or pathlib.Path("mended").exists()
"""


def test_what_passed_is_left_out_and_what_failed_runs_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=CASES)
    record = pytester.path / "record"
    for ran, passes, failures in (("012", 2, 1), ("0121", 0, 1), ("01211", 1, 0), ("01211", 0, 0)):
        if ran == "01211":
            Path("mended").touch()
        result = pytester.inline_run("-p", "no:cacheprovider", plugins=[Resumed(record)])
        passed, _, failed = result.listoutcomes()
        assert (Path("ran").read_text(), len(passed), len(failed)) == (ran, passes, failures)
