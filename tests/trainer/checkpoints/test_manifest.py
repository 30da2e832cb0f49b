"""What makes a checkpoint complete."""

from collections.abc import Callable
from pathlib import Path

import pytest

from simplerl_trainer.checkpoints import manifest
from simplerl_trainer.checkpoints.manifest import Incomplete


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "step-000002"
    (folder / "actor").mkdir(parents=True)
    (folder / "actor" / "rank0.pt").write_bytes(b"weights")
    (folder / "driver.json").write_text("{}")
    return folder


def test_a_complete_checkpoint_reads_back(folder: Path) -> None:
    written = manifest.complete(folder, 2, ["actor/rank0.pt", "driver.json"])
    assert manifest.verify(folder) == written == manifest.read(folder)
    assert written.step == 2
    assert written.files["actor/rank0.pt"].size == 7
    assert manifest.from_json(written.to_json()) == written
    assert sorted(p.name for p in folder.iterdir()) == ["actor", "driver.json", "manifest.json"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        pytest.param(lambda f: (f / "manifest.json").unlink(), "has no manifest.json", id="no manifest"),
        pytest.param(lambda f: (f / "manifest.json").write_text("{"), "cannot be read", id="half a manifest"),
        pytest.param(lambda f: (f / "manifest.json").write_text("[]"), "cannot be read", id="another document"),
        pytest.param(
            lambda f: (f / "manifest.json").write_text('{"format": 9}'), "has format 9", id="a manifest of the future"
        ),
        pytest.param(lambda f: (f / "actor/rank0.pt").unlink(), "rank0.pt is missing", id="a file is gone"),
        pytest.param(lambda f: (f / "actor/rank0.pt").write_bytes(b"wei"), "has 3 bytes instead of 7", id="cut short"),
        pytest.param(
            lambda f: (f / "actor/rank0.pt").write_bytes(b"Weights"), "another checksum", id="one byte differs"
        ),
    ],
)
def test_damage_is_named(folder: Path, damage: Callable[[Path], object], sentence: str) -> None:
    manifest.complete(folder, 2, ["actor/rank0.pt", "driver.json"])
    damage(folder)
    with pytest.raises(Incomplete, match=sentence):
        manifest.verify(folder)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        pytest.param(["actor/rank0.pt", "driver.json", "actor/rank1.pt"], r"rank1\.pt was not written", id="missing"),
        pytest.param(["driver.json"], r"rank0\.pt belongs to no part", id="a file that nobody named"),
        pytest.param(["../other", "driver.json"], "does not lie in", id="a file outside"),
    ],
)
def test_an_unsound_checkpoint_does_not_become_complete(folder: Path, names: list[str], sentence: str) -> None:
    with pytest.raises(Incomplete, match=sentence):
        manifest.complete(folder, 2, names)
    assert not (folder / "manifest.json").exists()
