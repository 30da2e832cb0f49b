"""Two GPUs: ranks over NCCL, and the road to a slot without a rank."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.gpu.running import Slot, started

from simplerl_trainer.weights.road import Broadcast, CudaIpc

pytestmark = pytest.mark.gpu(2)
TWO = {"gpus": 2, "gpusPerNode": 2}
MISMATCH_MAX, MISMATCH_MEAN = 0.25, 0.02  # as in test_slot.py


def agree(slot: Slot, version: int) -> None:
    drawn = slot.draw(64, seed=version)
    assert {f.weights_version for f in drawn} == {version}
    metrics = slot.annotate(drawn).metrics
    assert metrics["mismatch_mean"] < MISMATCH_MEAN
    assert metrics["mismatch_max"] < MISMATCH_MAX


@pytest.mark.parametrize("tied", [True, False])
def test_weights_go_by_nccl_to_a_slot_without_a_rank_and_by_ipc_to_its_other_engines(
    tied: bool, qwen2: Callable[..., Path], tmp_path: Path
) -> None:
    with started(
        tmp_path,
        qwen2(tied),
        placement={"disaggregated": {"trainingGpus": 1}},
        cluster=TWO,
        rollout={"enginesPerGpu": 2},
    ) as slot:
        slot.sync(1)
        (first,), (second,) = (slot.fleet.laid.receivers[e] for e in (0, 1))
        assert isinstance(first, Broadcast)
        assert first.backend == "nccl"
        assert isinstance(first.forward, CudaIpc)
        assert isinstance(second, CudaIpc)
        agree(slot, 1)
        assert not any(u.skipped for u in slot.update())
        slot.sync(2)
        agree(slot, 2)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_two_ranks_train_and_each_feeds_its_own_slot(stage: int, qwen2: Callable[..., Path], tmp_path: Path) -> None:
    with started(tmp_path, qwen2(tied=True), cluster=TWO, training={"zeroStage": stage}) as slot:
        slot.sync(1)
        assert all(isinstance(r, CudaIpc) for (r,) in slot.fleet.laid.receivers.values())
        agree(slot, 1)
        assert not any(u.skipped for u in slot.update())
        slot.sync(2)
        agree(slot, 2)


def test_two_ranks_compute_what_one_computes(qwen2: Callable[..., Path], tmp_path: Path) -> None:
    found, drawn = {}, None
    for gpus in (1, 2):
        cluster = {"gpus": gpus, "gpusPerNode": gpus}
        with started(tmp_path / str(gpus), qwen2(tied=True), cluster=cluster) as slot:
            slot.sync(1)
            drawn = drawn or slot.draw(64)
            metrics = slot.annotate(drawn).metrics
            found[gpus] = {"entropy": metrics["entropy"]} | slot.update()[0].metrics
    for name in ("entropy", "actor_grad_norm", "critic_grad_norm", "value_loss"):
        assert found[2][name] == pytest.approx(found[1][name], rel=1e-2), name


def test_an_engine_over_two_gpus_draws_what_the_ranks_compute(qwen2: Callable[..., Path], tmp_path: Path) -> None:
    with started(tmp_path, qwen2(tied=True), cluster=TWO, rollout={"tensorParallelSize": 2}) as slot:
        slot.sync(1)
        (roads,) = slot.fleet.laid.receivers.values()
        assert [type(r) for r in roads] == [CudaIpc, CudaIpc]
        agree(slot, 1)
        assert not any(u.skipped for u in slot.update())
        slot.sync(2)
        agree(slot, 2)
