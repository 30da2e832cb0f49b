"""A disk that fills keeps the last good checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tests.trainer.disks import small_disk
from torch import nn

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import store
from simplerl_trainer.checkpoints.shards import KEYS, Shard
from simplerl_trainer.policy import saved
from simplerl_trainer.policy.trained import AtHand


@dataclass
class Weights:
    """A model of 0.75 MiB with its moments, on one rank."""

    module: nn.Module

    def written(self, at_hand: AtHand) -> Sequence[Shard]:
        numel = 2**16
        return [Shard("weight", (numel,), 0, {key: torch.ones(numel) for key in KEYS})]

    def steps(self) -> torch.Tensor:
        return torch.tensor(1.0)


def save(root: Path, model: Path, step: int) -> store.Checkpoint:
    folder = store.begin(root, step, 1)
    weights = {"actor": Weights(nn.Module()), "critic": Weights(nn.Module())}
    files = saved.save(folder, weights, 0, 1, Precision.FP32, str(model), lambda t: t)  # type: ignore[arg-type]
    return store.finish(folder, step, files, {"step": step})


def test_a_disk_that_fills_is_named_with_its_room_and_keeps_what_is_complete(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    with small_disk(tmp_path / "disk", 4) as disk:
        root = disk / "checkpoints"
        first, second = save(root, model, 2), save(root, model, 4)
        with pytest.raises(TrainerFailure) as caught:
            save(root, model, 6)
        assert caught.value.reason is FailureReason.CHECKPOINT_FAILED
        assert f"rank 0 could not write checkpoint {root}/step-000006.attempt-1: " in caught.value.message
        assert "No space left on device" in caught.value.message
        assert f" of 4.0 MiB are free at {root}" in caught.value.message
        newest, skipped = store.newest(root)
        assert newest == second
        assert [s.name for s in skipped] == ["step-000006.attempt-1"]
        assert store.complete(root) == [first, second]

        store.abandon(root / "step-000006.attempt-1")
        store.prune(root, 1, 4)
        assert save(root, model, 6).step == 6, "there is room again"


def test_a_disk_that_is_full_to_the_last_byte_takes_no_manifest(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    with small_disk(tmp_path / "disk", 4) as disk:
        root = disk / "checkpoints"
        first = save(root, model, 2)
        folder = store.begin(root, 4, 1)
        with (disk / "filler").open("wb", buffering=0) as f, pytest.raises(OSError, match="No space left"):
            f.writelines(bytes(4096) for _ in range(1024))
        with pytest.raises(TrainerFailure, match=r"could not be finished: No space left on device \(0\.0 MiB of") as e:
            store.finish(folder, 4, {}, {"step": 4})
        assert e.value.reason is FailureReason.CHECKPOINT_FAILED
        assert store.newest(root)[0] == first
