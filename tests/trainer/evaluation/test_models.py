"""The models of an evaluation: folders, checkpoints, and every checkpoint of a run."""

from pathlib import Path

import pytest

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.checkpoints import store
from simplerl_trainer.evaluation import models


def run_folder(path: Path, *steps: int) -> Path:
    for step in steps:
        store.finish(store.begin(path / "checkpoints", step, 1), step, {}, {"step": step})
    return path


def plain(path: Path, weights: bytes = b"w" * 1000) -> Path:
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(weights)
    return path


def test_a_folder_a_checkpoint_and_a_run_become_models(tmp_path: Path) -> None:
    folder, run = plain(tmp_path / "qwen"), run_folder(tmp_path / "run", 20, 40)
    found = models.find([folder, run / "checkpoints/step-000040"])
    assert [(m.label, m.folder, m.step) for m in found] == [("qwen", folder, None), ("run-step-000040", run, 40)]
    assert [m.label for m in models.find([run])] == ["run-step-000020", "run-step-000040"]
    store.begin(run / "checkpoints", 60, 1)
    assert len(models.find([run])) == 2, "one that was not finished is none"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        pytest.param("none", "which is no folder: give a Hugging Face folder, a checkpoint or a run's", id="nothing"),
        pytest.param("empty", "which has neither a config.json, nor a manifest.json, nor a folder", id="no model"),
        pytest.param("new", "a run's folder without a complete checkpoint: train it first", id="a new run"),
    ],
)
def test_a_path_without_a_model_is_a_sentence(tmp_path: Path, path: str, sentence: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "new/checkpoints").mkdir(parents=True)
    with pytest.raises(TrainerFailure) as caught:
        models.find([tmp_path / path])
    assert caught.value.message.startswith(f"--model-path is {tmp_path / path}, {sentence}")


def test_a_checkpoint_whose_manifest_is_damaged_is_a_sentence(tmp_path: Path) -> None:
    checkpoint = run_folder(tmp_path / "run", 20) / "checkpoints/step-000020"
    (checkpoint / "manifest.json").write_text("")
    with pytest.raises(TrainerFailure) as caught:
        models.find([checkpoint])
    assert caught.value.message.startswith(
        f"--model-path is {checkpoint}, a checkpoint that cannot be used ({checkpoint}/manifest.json cannot be read: "
    )


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    folder = plain(tmp_path / "qwen")
    with pytest.raises(TrainerFailure, match="--model-path has two models of the name qwen"):
        models.find([folder, folder])


def test_a_fingerprint_tells_weights_apart(tmp_path: Path) -> None:
    large = bytearray(b"w" * (64 * 2**16 + 1000))
    (a,) = models.find([plain(tmp_path / "a", bytes(large))])
    large[-1] ^= 1
    (b,) = models.find([plain(tmp_path / "b", bytes(large))])
    (again,) = models.find([tmp_path / "a"])
    assert a.fingerprint() == again.fingerprint() != b.fingerprint()
    run = run_folder(tmp_path / "run", 20, 40)
    assert len({m.fingerprint() for m in models.find([run])}) == 2


def test_a_damaged_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    (model,) = models.find([run_folder(tmp_path / "run", 20)])
    with pytest.raises(TrainerFailure, match="cannot be exported"), models.folder(model, tmp_path):
        pass
    (tmp_path / "run/checkpoints/step-000020/driver.json").write_text("{}")
    with pytest.raises(TrainerFailure, match=r"driver\.json"), models.folder(model, tmp_path):
        pass
    assert not list(tmp_path.glob(".run*")), "nothing is left"
