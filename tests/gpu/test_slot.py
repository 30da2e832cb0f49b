"""One GPU that a rank and its engines share: weight sync by each road, sleep and wake, with and without MPS.

What was seen to work is in docs/decisions (the entry on GPUs).
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from tests.gpu.running import Slot, started

from simplerl_trainer import mps
from simplerl_trainer.weights import roads
from simplerl_trainer.weights.road import CudaIpc, SharedMemory

MISMATCH_MAX, MISMATCH_MEAN = 0.25, 0.02
"""bfloat16 on both sides, other kernels: nats between an engine's and a rank's log-probability of a token."""


def by_shared_memory(laid: roads.Roads) -> roads.Roads:
    """The same roads through the host's memory."""

    def moved(road: CudaIpc) -> SharedMemory:
        return SharedMemory(road.prefix, road.readers, road.timeout)

    return roads.Roads(
        {r: replace(s, local=moved(s.local)) for r, s in laid.senders.items()},
        {e: tuple(map(moved, of_engine)) for e, of_engine in laid.receivers.items()},
    )


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((True, 4, True), id="four engines under MPS, tied"),
        pytest.param((False, 1, False), id="one engine without MPS, untied"),
        pytest.param((False, 4, False), id="four engines without MPS, untied"),
    ],
)
def slot(
    request: pytest.FixtureRequest, qwen2: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slot]:
    with_mps, engines, tied = request.param
    before = running()
    with pytest.MonkeyPatch.context() as patch:
        if with_mps:
            assert shutil.which(mps.CONTROL), "the machine has no MPS"
        else:
            patch.setattr(mps, "wanted", lambda plan, cpu_only: False)
        folder = tmp_path_factory.mktemp("run")
        with started(folder, qwen2(tied), rollout={"enginesPerGpu": engines}) as slot:
            assert slot.fleet.without_mps is None
            yield slot
        bound = time.monotonic() + 30
        while running() - before and time.monotonic() < bound:
            time.sleep(0.1)
        assert not running() - before, "the run ends its daemon"


def free_gib() -> float:
    """What nobody holds of the GPU."""
    return torch.cuda.mem_get_info(0)[0] / 2**30


def running() -> set[int]:
    """The MPS daemons of this machine."""
    return {p.pid for p in psutil.process_iter(["name"]) if (p.info["name"] or "").startswith("nvidia-cuda-mps")}


def agree(slot: Slot, version: int, seed: int = 0) -> float:
    """Draws, and compares with the ranks under the same weights; returns the greatest difference in nats."""
    drawn = slot.draw(64, seed=seed)
    assert {f.weights_version for f in drawn} == {version}
    metrics = slot.annotate(drawn).metrics
    assert metrics["mismatch_mean"] < MISMATCH_MEAN
    assert metrics["mismatch_max"] < MISMATCH_MAX
    return metrics["mismatch_max"]


def test_weights_come_by_cuda_ipc_and_by_shared_memory_alike(slot: Slot) -> None:
    slot.sync(1)
    agree(slot, 1)
    assert all(isinstance(r, CudaIpc) for (r,) in slot.fleet.laid.receivers.values())
    slot.fleet.laid = by_shared_memory(slot.fleet.laid)
    slot.sync(2)
    assert all(isinstance(r, SharedMemory) for (r,) in slot.fleet.laid.receivers.values())
    agree(slot, 2)
    slot.fleet.laid = None


def test_updated_weights_reach_engines_that_stay_awake(slot: Slot) -> None:
    slot.sync(3)
    drawn = slot.draw(64)
    slot.annotate(drawn)
    assert not any(u.skipped for u in slot.update())
    stale = slot.annotate(drawn).metrics["mismatch_max"]
    assert stale > 2 * MISMATCH_MAX, "the update must show, else this test cannot fail"
    slot.sync(4)
    agree(slot, 4)


def test_engines_sleep_while_ranks_train_and_wake_with_new_weights(slot: Slot) -> None:
    slot.sync(5)
    pool, ranks = slot.fleet.pool, slot.fleet.ranks
    for version in (6, 7):
        drawn = slot.draw(64, seed=version)
        awake = free_gib()
        slot.run(pool.sleep())
        asleep = free_gib()
        assert asleep - awake > 0.9 * slot.cache_gib, "sleeping engines give their KV caches back"
        slot.run(ranks.reload())
        slot.annotate(drawn)
        assert not any(u.skipped for u in slot.update())
        slot.run(pool.wake(["weights"]))
        slot.sync(version)
        slot.run(ranks.offload())
        slot.run(pool.wake(["kv_cache"]))
        agree(slot, version, seed=100 * version)


def test_an_engine_that_is_killed_leaves_its_work_to_the_others(slot: Slot) -> None:
    engines = slot.fleet.pool.engines
    if len(engines) == 1:
        pytest.skip("needs another engine")
    slot.sync(8)
    (victim, *_) = [p for p in psutil.Process().children(recursive=True) if "EngineActor" in " ".join(p.cmdline())]

    async def kill() -> None:
        await asyncio.sleep(0.3)
        victim.kill()

    async def drawn() -> int:
        killing = asyncio.ensure_future(kill())
        count = len([f async for f in slot.fleet.pool.generate(slot.requests(512, 300))])
        await killing
        return count

    assert slot.run(drawn()) == 512
    assert len(slot.fleet.pool.engines) == len(engines) - 1
    slot.sync(9)
    agree(slot, 9)
