"""Long tests are resumable: what passed on the very same code is not run again.

`pytest -p tests.resumed`: the passed tests' ids stand in a file of the user's cache folder that is named by the code's
tree ids (documents left out); a tree with changes that are not committed has none, and is tested whole.
"""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_CODE = (
    "charts",
    "crds",
    "examples",
    "hack",
    "images",
    "operator",
    "pyproject.toml",
    "requirements",
    "tests",
    "trainer",
)


class Resumed:
    """Leaves out what has passed, and notes what passes."""

    def __init__(self, record: Path) -> None:
        self._record = record

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        passed = set(self._record.read_text("utf-8").splitlines()) if self._record.exists() else set()
        earlier = [item for item in items if item.nodeid in passed]
        items[:] = [item for item in items if item.nodeid not in passed]
        if earlier:
            config.hook.pytest_deselected(items=earlier)
            print(f"\n{len(earlier)} tests passed earlier on this code and are left out: {self._record}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            with self._record.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


def pytest_configure(config: pytest.Config) -> None:
    name = _code()
    if name is not None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        config.pluginmanager.register(Resumed(cache / "simplerl" / "long-tests" / name))


def _code() -> str | None:
    """A name of the code as it is committed; None where something of it is changed."""
    if _git("status", "--porcelain", "--", *_CODE):
        return None
    trees = _git("rev-parse", *(f"HEAD:{part}" for part in _CODE))
    return hashlib.sha256(trees.encode()).hexdigest()[:16]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
