"""The folder of a run's checkpoints."""

import logging
from pathlib import Path

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints import store


def save(root: Path, step: int, *, whole: bool = True) -> Path:
    folder = store.begin(root, step)
    (folder / "actor").mkdir()
    (folder / "actor" / "rank0.pt").write_text(f"weights of {step}")
    if whole:
        store.finish(folder, step, ["actor/rank0.pt"], {"step": step})
    return folder


def names(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir())


def test_a_run_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert store.newest(tmp_path / "nowhere") is None
    assert store.complete(tmp_path) == []


def test_the_newest_whole_checkpoint_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (2, 4, 6):
        save(tmp_path, step)
    save(tmp_path, 8, whole=False)
    (tmp_path / "step-000006" / "actor" / "rank0.pt").write_text("weights of 7")
    (tmp_path / "step-x").mkdir()
    with caplog.at_level(logging.WARNING):
        newest = store.newest(tmp_path)
    assert newest is not None
    assert newest == store.Checkpoint(4, tmp_path / "step-000004")
    assert store.state_of(newest) == {"step": 4}
    assert "step-000008 is skipped" in caplog.text
    assert "step-000006 is skipped" in caplog.text
    assert "another checksum" in caplog.text


def test_a_folder_that_was_renamed_is_not_taken(tmp_path: Path) -> None:
    save(tmp_path, 2).rename(tmp_path / "step-000009")
    assert store.newest(tmp_path) is None


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        pytest.param(1, ["step-000008"], id="the newest only"),
        pytest.param(2, ["step-000006", "step-000008"], id="the two newest"),
        pytest.param(9, ["step-000002", "step-000006", "step-000008"], id="all complete ones"),
    ],
)
def test_old_and_partial_checkpoints_go_once_a_newer_one_is_complete(
    tmp_path: Path, keep: int, left: list[str]
) -> None:
    for step in (2, 4, 6, 8):
        save(tmp_path, step, whole=step != 4)
    store.prune(tmp_path, keep, 8)
    assert names(tmp_path) == left


def test_nothing_goes_while_the_newer_one_is_partial(tmp_path: Path) -> None:
    save(tmp_path, 2)
    save(tmp_path, 4, whole=False)
    assert store.prune(tmp_path, 1, 4) == []
    assert names(tmp_path) == ["step-000002", "step-000004"]


def test_saving_a_step_again_replaces_what_is_there(tmp_path: Path) -> None:
    (save(tmp_path, 2, whole=False) / "stray").write_text("of an earlier attempt")
    save(tmp_path, 2)
    assert store.newest(tmp_path) == store.Checkpoint(2, tmp_path / "step-000002")


def test_a_rank_that_wrote_nothing_fails_the_checkpoint_by_name(tmp_path: Path) -> None:
    folder = save(tmp_path, 2, whole=False)
    with pytest.raises(TrainerFailure, match=r"rank1\.pt was not written") as caught:
        store.finish(folder, 2, ["actor/rank0.pt", "actor/rank1.pt"], {})
    assert caught.value.reason is FailureReason.CHECKPOINT_FAILED


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainerFailure, match="cannot be begun"):
        store.begin(tmp_path / "file", 2)
