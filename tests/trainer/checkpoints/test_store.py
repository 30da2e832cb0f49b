"""The folder of a run's checkpoints."""

from collections.abc import Callable
from pathlib import Path

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints import manifest, store
from simplerl_trainer.checkpoints.manifest import File, Incomplete


def save(root: Path, step: int, *, whole: bool = True, attempt: int = 1) -> Path:
    folder = store.begin(root, step, attempt)
    (folder / "actor").mkdir()
    (folder / "actor" / "rank0").write_text(f"weights of {step}")
    if not whole:
        return folder
    files = {"actor/rank0": manifest.settled(folder / "actor/rank0")}
    return store.finish(folder, step, files, {"step": step}).folder


def names(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir())


def test_a_run_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert store.newest(tmp_path / "nowhere") == (None, [])
    assert store.complete(tmp_path) == []


def test_the_newest_whole_checkpoint_is_taken_and_what_is_skipped_says_why(tmp_path: Path) -> None:
    # fault 34: prime-rl#2992, OpenRLHF#1208
    for step in (2, 4, 6):
        save(tmp_path, step)
    save(tmp_path, 8, whole=False)
    (tmp_path / "step-000006/actor/rank0").write_text("weights of 7")
    (tmp_path / "step-x").mkdir()
    newest, skipped = store.newest(tmp_path)
    assert newest == store.Checkpoint(4, tmp_path / "step-000004")
    assert store.state_of(newest) == {"step": 4}
    assert [(s.name, s.why) for s in skipped] == [
        ("step-000008.attempt-1", f"{tmp_path}/step-000008.attempt-1 was not finished by its writer"),
        ("step-000006", f"{tmp_path}/step-000006/actor/rank0 has another checksum than in manifest.json"),
    ]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(
            lambda f: (f / "manifest.json").unlink(),
            "{folder} has no manifest.json: its writer did not finish",
            id="without a manifest",
        ),
        pytest.param(
            lambda f: (f / "driver.json").unlink(), "{folder}/driver.json is missing", id="without the driver's state"
        ),
        pytest.param(
            lambda f: (f / "actor/rank0").write_text(""),
            "{folder}/actor/rank0 has 0 bytes instead of 12",
            id="with an empty file",
        ),
        pytest.param(lambda f: f.rename(f.with_name("step-000009")), "manifest.json is of step 4", id="renamed"),
    ],
)
def test_the_one_before_is_used_where_the_newest_is(tmp_path: Path, damage: Callable[[Path], object], why: str) -> None:
    save(tmp_path, 2)
    damage(save(tmp_path, 4))
    newest, skipped = store.newest(tmp_path)
    assert newest == store.Checkpoint(2, tmp_path / "step-000002")
    assert len(skipped) == 1
    assert why.format(folder=tmp_path / "step-000004") in skipped[0].why


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        pytest.param(1, ["step-000008"], id="the newest only"),
        pytest.param(2, ["step-000006", "step-000008"], id="the two newest"),
        pytest.param(9, ["step-000002", "step-000006", "step-000008"], id="all complete ones"),
    ],
)
def test_old_and_unsound_checkpoints_go_once_a_newer_one_is_complete(
    tmp_path: Path, keep: int, left: list[str]
) -> None:
    # fault 34: verl#4873 (keeping one checkpoint loses data)
    for step in (2, 4, 6, 8):
        save(tmp_path, step)
    (tmp_path / "step-000004" / "manifest.json").unlink()
    store.prune(tmp_path, keep, 8)
    assert names(tmp_path) == left


def test_nothing_goes_before_the_newer_one_is_complete(tmp_path: Path) -> None:
    save(tmp_path, 2)
    save(tmp_path, 4, whole=False)
    assert store.prune(tmp_path, 1, 4) == []
    assert names(tmp_path) == ["step-000002", "step-000004.attempt-1"]
    assert store.newest(tmp_path)[0] == store.Checkpoint(2, tmp_path / "step-000002")


def test_the_next_checkpoint_removes_what_was_left_half_written(tmp_path: Path) -> None:
    save(tmp_path, 2, whole=False)
    save(tmp_path, 2, whole=False, attempt=2)
    save(tmp_path, 2, attempt=2)
    assert names(tmp_path) == ["step-000002"]


def test_an_older_attempt_leaves_a_newer_one_s_files_alone(tmp_path: Path) -> None:
    # fault 35: NeMo-RL#3504, prime-rl#2699
    newer = save(tmp_path, 4, whole=False, attempt=2)
    older = store.begin(tmp_path, 4, attempt=1)
    assert older != newer
    assert (newer / "actor/rank0").exists()


def test_saving_a_step_again_replaces_what_is_there(tmp_path: Path) -> None:
    (save(tmp_path, 2) / "stray").write_text("of an earlier attempt")
    save(tmp_path, 2, attempt=2)
    assert store.newest(tmp_path) == (store.Checkpoint(2, tmp_path / "step-000002"), [])
    assert not (tmp_path / "step-000002/stray").exists()


def test_a_rank_that_wrote_nothing_fails_the_checkpoint_by_name(tmp_path: Path) -> None:
    folder = save(tmp_path, 2, whole=False)
    files = {"actor/rank0": manifest.settled(folder / "actor/rank0"), "actor/rank1": File(1, "")}
    with pytest.raises(TrainerFailure, match="rank1 was not written") as caught:
        store.finish(folder, 2, files, {})
    assert caught.value.reason is FailureReason.CHECKPOINT_FAILED
    assert store.newest(tmp_path)[0] is None


def test_a_place_that_cannot_be_written_is_named_with_its_room(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainerFailure, match=r"file/step-000002\.attempt-1 cannot be begun: .* are free at ") as caught:
        store.begin(tmp_path / "file", 2, 1)
    assert caught.value.reason is FailureReason.CHECKPOINT_FAILED


def test_a_checkpoint_of_a_step_is_found_or_those_that_there_are_named(tmp_path: Path) -> None:
    save(tmp_path, 2)
    save(tmp_path, 4)
    assert store.at(tmp_path, 2) == store.Checkpoint(2, tmp_path / "step-000002")
    with pytest.raises(Incomplete, match="has no checkpoint after step 3, but after: 2, 4"):
        store.at(tmp_path, 3)
