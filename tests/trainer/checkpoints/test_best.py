"""Which evaluation leaves its model, and how a folder is replaced."""

from math import nan
from pathlib import Path

import pytest

from simplerl_trainer.checkpoints import best, swap
from simplerl_trainer.checkpoints.best import Best


@pytest.mark.parametrize(
    ("new", "old", "wins"),
    [
        pytest.param(Best(0, "gsm8k", 0.0), None, True, id="the first"),
        pytest.param(Best(4, "gsm8k", 0.5), Best(2, "gsm8k", 0.4), True, id="a better one"),
        pytest.param(Best(4, "gsm8k", 0.5), Best(2, "gsm8k", 0.5), False, id="not an equal one"),
        pytest.param(Best(4, "gsm8k", 0.3), Best(2, "gsm8k", 0.5), False, id="not a worse one"),
        pytest.param(Best(4, "gsm8k", nan), None, False, id="not one without any answer"),
        pytest.param(Best(4, "math", 0.1), Best(2, "gsm8k", 0.5), True, id="one of another data set"),
    ],
)
def test_the_best_is(new: Best, old: Best | None, wins: bool) -> None:
    assert best.beats(new, old) == wins


def test_a_result_reads_back(tmp_path: Path) -> None:
    assert best.read(tmp_path / "best-model") is None
    (tmp_path / "best.json").write_text(Best(4, "gsm8k", 0.5).to_json())
    assert best.read(tmp_path) == Best(4, "gsm8k", 0.5)
    (tmp_path / "best.json").write_text('{"step": 4}')
    with pytest.raises(ValueError, match=r"best\.json cannot be read"):
        best.read(tmp_path)


def make(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "file").write_text(text)


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for text in ("first", "second"):
        make(swap.partial_of(target), text)
        swap.replace(target)
        assert (target / "file").read_text() == text
        assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_writer_killed_between_the_renames_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    make(tmp_path / "model.old", "old")
    make(swap.partial_of(target), "half of the new")
    swap.repair(target)
    assert (target / "file").read_text() == "old"
    swap.repair(target)
    assert (target / "file").read_text() == "old"


def test_a_writer_killed_after_the_renames_leaves_the_new_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    make(target, "new")
    make(tmp_path / "model.old", "old")
    swap.repair(target)
    assert (target / "file").read_text() == "new"
