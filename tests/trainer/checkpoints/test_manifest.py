"""What makes a checkpoint complete."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from simplerl_trainer.checkpoints import manifest
from simplerl_trainer.checkpoints.manifest import File, Incomplete


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "step-000002"
    (folder / "actor").mkdir(parents=True)
    (folder / "actor" / "rank0").write_bytes(b"weights")
    (folder / "driver.json").write_text("{}")
    return folder


def files(folder: Path) -> dict[str, File]:
    return {name: manifest.settled(folder / name) for name in ("actor/rank0", "driver.json")}


def test_a_complete_checkpoint_reads_back(folder: Path) -> None:
    written = manifest.complete(folder, 2, files(folder))
    assert manifest.verify(folder) == written == manifest.read(folder)
    assert written.step == 2
    assert written.files["actor/rank0"].size == 7
    assert manifest.from_json(written.to_json()) == written
    assert sorted(p.name for p in folder.iterdir()) == ["actor", "driver.json", "manifest.json"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        pytest.param(lambda f: (f / "manifest.json").unlink(), "has no manifest.json", id="no manifest"),
        pytest.param(lambda f: (f / "manifest.json").write_text("{"), "cannot be read", id="half a manifest"),
        pytest.param(lambda f: (f / "manifest.json").write_text("[]"), "cannot be read", id="another document"),
        pytest.param(
            lambda f: (f / "manifest.json").write_text('{"format": 1}'), "has format 1", id="a manifest of another time"
        ),
        pytest.param(
            lambda f: (f / "manifest.json").write_text("[" * 100_000),
            "^/.*/manifest.json cannot be read: RecursionError",
            id="lists without end",
        ),
        pytest.param(
            lambda f: (f / "manifest.json").write_text('{"format": 2, "step": 1e999, "files": {}}'),
            "^/.*/manifest.json cannot be read: OverflowError",
            id="a step that is no number",
        ),
        pytest.param(
            lambda f: ((f / "actor/rank0").unlink(), (f / "actor/rank0").mkdir()),
            "actor/rank0 cannot be read: Is a directory",
            id="a folder in a file's place",
        ),
        pytest.param(lambda f: (f / "actor/rank0").unlink(), "actor/rank0 is missing", id="a file is gone"),
        pytest.param(lambda f: (f / "actor/rank0").write_bytes(b"wei"), "has 3 bytes instead of 7", id="cut short"),
        pytest.param(
            lambda f: (f / "actor/rank0").write_bytes(b"Weights"), "actor/rank0 has another checksum", id="one byte"
        ),
    ],
)
def test_damage_is_named(folder: Path, damage: Callable[[Path], object], sentence: str) -> None:
    manifest.complete(folder, 2, files(folder))
    damage(folder)
    with pytest.raises(Incomplete, match=sentence):
        manifest.verify(folder)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"actor/rank1": File(7, "0")}, "actor/rank1 was not written", id="a file is missing"),
        pytest.param({"actor/rank0": File(9, "0")}, "has 7 bytes instead of 9", id="a file lost its end"),
        pytest.param({"actor/rank0": None}, "rank0 belongs to no part", id="a file that nobody named"),
        pytest.param({"../other": File(0, "0")}, "does not lie in", id="a file outside"),
        pytest.param({"/other": File(0, "0")}, "does not lie in", id="a file elsewhere"),
    ],
)
def test_an_unsound_checkpoint_does_not_become_complete(
    folder: Path, change: Mapping[str, File | None], sentence: str
) -> None:
    named = {name: file for name, file in (files(folder) | dict(change)).items() if file is not None}
    with pytest.raises(Incomplete, match=sentence):
        manifest.complete(folder, 2, named)
    assert not (folder / "manifest.json").exists()
