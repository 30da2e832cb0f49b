"""One format of checkpoints: saved by any number of ranks at any ZeRO stage, resumed by any other at any other."""

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.trainer.policy import processes
from transformers import AutoModelForCausalLM

from simplerl_trainer.checkpoints import export
from simplerl_trainer.checkpoints.shards import KEYS, Saved
from simplerl_trainer.policy.protocol import Trajectory

Found = dict[str, Any]


@pytest.fixture(scope="module")
def folder(model_folder: Callable[[str], Path], trajectories: list[Trajectory], tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("resume")
    (folder / "qwen2-tied").symlink_to(model_folder("qwen2 tied"))
    torch.save(trajectories, folder / "trajectories.pt")
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[int, Found]:
    """By number of ranks: what the first rank of the group found."""
    processes.run(processes.groups("resume_process.py", folder))
    return {ranks: torch.load(folder / f"resumed-{ranks}-0.pt", weights_only=False) for ranks in (1, 2)}


def close(a: dict[str, float], b: dict[str, float]) -> bool:
    return a.keys() == b.keys() and all(
        (isnan(a[n]) and isnan(b[n])) or a[n] == pytest.approx(b[n], rel=1e-5, abs=1e-5) for n in a
    )


CASES = [
    pytest.param(ranks, saved, loaders, stage, id=f"{ranks} ranks at stage {saved} -> {loaders} at stage {stage}")
    for loaders in (1, 2)
    for stage in (0, 1, 2, 3)
    for ranks, saved in ((3 - loaders, 3 - stage), (loaders, (stage + 2) % 4))
]


@pytest.mark.parametrize(("ranks", "saved", "loaders", "stage"), CASES)
def test_a_resumed_run_goes_on_as_the_one_that_was_not_interrupted(
    found: dict[int, Found], ranks: int, saved: int, loaders: int, stage: int
) -> None:
    # fault 32: NeMo-RL#3171, verl#7953, slime#1546 (optimizer and learning rate lost or stepped twice)
    plain, resumed = found[ranks][f"saved {saved}"], found[loaders][f"{ranks} {saved} -> {stage}"]
    assert close(resumed["annotation"], plain["annotation"])
    for a, b in zip(resumed["updates"], plain["updates"], strict=True):
        assert close(a, b)
        assert a["actor_learning_rate"] == b["actor_learning_rate"]
    assert plain["updates"][0]["actor_learning_rate"] != plain["updates"][1]["actor_learning_rate"], (
        "the schedule moves"
    )


@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
def test_a_run_goes_on_with_its_states_on_the_host(found: dict[int, Found], ranks: int) -> None:
    other = 3 - ranks
    for a, b in zip(
        found[ranks][f"{other} 1 -> 3 on the host"]["updates"], found[other]["saved 1"]["updates"], strict=True
    ):
        assert close(a, b)


@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        pytest.param("GRPO", ["actor", "model", "ranks.json"], id="without a critic"),
        pytest.param(
            "warm-up", ["actor", "critic", "model", "ranks.json"], id="in which only the critic has learnt yet"
        ),
    ],
)
def test_a_run_goes_on(found: dict[int, Found], ranks: int, folder: Path, kind: str, parts: list[str]) -> None:
    plain, resumed = found[3 - ranks][f"saved {kind}"], found[ranks][f"{3 - ranks} 1 -> 3 {kind}"]
    for a, b in zip(resumed["updates"], plain["updates"], strict=True):
        assert close(a, b)
        assert ("critic_grad_norm" in a) == ("critic" in parts)
        assert a["actor_learning_rate"] > 0
    assert sorted(p.name for p in (folder / f"saved-{ranks}-1-{kind}").iterdir()) == parts


def states(folder: Path) -> dict[str, torch.Tensor]:
    """Every master and moment of a checkpoint, whole."""
    found = {}
    for part in ("actor", "critic"):
        saved = Saved(folder / part)
        found |= {f"{part} {key} {name}": saved.whole(name, key) for name in saved.shapes for key in KEYS}
    return found


@pytest.mark.parametrize(
    ("ranks", "saved", "loaders", "stage", "precision"),
    [
        *(
            pytest.param(r, s, 3 - r, t, "BF16", id=f"BF16, {r} ranks at stage {s} -> {3 - r} at stage {t}")
            for r in (1, 2)
            for s, t in ((3, 1), (1, 3), (0, 2))
        ),
        pytest.param(2, 3, 1, 0, "FP32", id="FP32, 2 ranks at stage 3 -> 1 at stage 0"),
        pytest.param(1, 0, 2, 3, "FP32", id="FP32, 1 rank at stage 0 -> 2 at stage 3"),
    ],
)
def test_precision_is_kept_to_the_last_bit(
    found: dict[int, Found], folder: Path, ranks: int, saved: int, loaders: int, stage: int, precision: str
) -> None:
    first = states(folder / f"saved-{ranks}-{saved}-{precision}")
    again = states(folder / f"saved-{ranks}-{saved}-{precision}-again-{loaders}-{stage}")
    assert first.keys() == again.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in first.items())
    if precision == "BF16":
        masters = [t for name, t in first.items() if " master " in name]
        assert any(not torch.equal(t, t.bfloat16().float()) for t in masters), "masters hold more than bfloat16 does"


@pytest.mark.parametrize("precision", ["FP32", "BF16"])
@pytest.mark.parametrize("stage", [0, 1, 3])
@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
def test_a_rank_that_sleeps_saves_and_exports_the_same(
    found: dict[int, Found], folder: Path, ranks: int, stage: int, precision: str
) -> None:
    name = f"saved-{ranks}-{stage}-{precision}"
    awake, asleep = states(folder / name), states(folder / f"{name}-asleep")
    assert awake.keys() == asleep.keys()
    assert all(torch.equal(asleep[n], tensor) for n, tensor in awake.items())
    model = AutoModelForCausalLM.from_pretrained(folder / f"{name}-asleep-model", dtype="auto")
    assert model.dtype == {"FP32": torch.float32, "BF16": torch.bfloat16}[precision]
    for n, p in model.named_parameters():
        assert torch.equal(p.detach().flatten(), awake[f"actor master causal.{n}"].to(model.dtype))
    assert (folder / f"{name}-asleep-model/note.txt").read_text() == "asleep"
    assert not (folder / f"{name}-asleep-model.shards").exists()


def test_no_rank_writes_more_than_its_part(found: dict[int, Found], folder: Path) -> None:
    for stage in (0, 1, 2, 3):
        sizes = [p.stat().st_size for p in sorted((folder / f"saved-2-{stage}-FP32/actor").iterdir())]
        assert len(sizes) == 2
        assert max(sizes) < 1.2 * min(sizes)


def test_a_folder_without_a_run_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(export.NoCheckpoint, match="has no folder checkpoints: give a run's folder"):
        export.export(tmp_path, tmp_path / "model")
