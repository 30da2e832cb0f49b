"""How much of /dev/shm a sync takes, and what is said where there is less. Fault 40 (nccl#525, gpustack#5014)."""

from collections.abc import Mapping, Sequence

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Slot
from simplerl_trainer.weights import room
from simplerl_trainer.weights.buckets import Bucket, Parameter, make_buckets
from simplerl_trainer.weights.roads import roads

MIB = 2**20


def slot(index: int, node: int, rank: int | None, *engines: int) -> Slot:
    return Slot(index=index, node=node, gpu=index, rank=rank, engines=engines)


def buckets(count: int, mib: int) -> Sequence[Bucket]:
    """`count` parameters of `mib` MiB, each in a bucket of its own."""
    return make_buckets([Parameter(f"p{n}", "float32", (mib * MIB // 4,)) for n in range(count)], limit=mib * MIB)


@pytest.mark.parametrize(
    ("slots", "buckets", "needed"),
    [
        pytest.param([slot(0, 0, 0, 0)], buckets(9, 100), {0: 300}, id="two unread buckets and one that is loaded"),
        pytest.param([slot(0, 0, 0, 0, 1, 2)], buckets(9, 100), {0: 300}, id="engines of a slot read the same pages"),
        pytest.param([slot(0, 0, 0, 0)], buckets(1, 7), {0: 7}, id="never more than the model"),
        pytest.param(
            [slot(0, 0, 0, 0), slot(1, 0, 1, 1), slot(2, 1, 2, 2)],
            buckets(9, 100),
            {0: 600, 1: 300},
            id="each slot of a node has its own",
        ),
        pytest.param([slot(0, 0, 0, 0), slot(1, 0, 1, 0)], buckets(9, 100), {0: 600}, id="an engine over two slots"),
        pytest.param(
            [slot(0, 0, 0, 0), slot(1, 0, 1, 0), slot(2, 1, 2, 1)],
            buckets(1, 7),
            {0: 256, 1: 7},
            id="workers that are processes of their own have queues",
        ),
        pytest.param(
            [slot(0, 0, 0), slot(1, 1, None, 0), slot(2, 2, None, 1, 2)],
            buckets(9, 100),
            {2: 300},
            id="what comes by broadcast lies there only where it is passed on",
        ),
    ],
)
def test_a_sync_needs(slots: Sequence[Slot], buckets: Sequence[Bucket], needed: Mapping[int, int]) -> None:
    all_roads = roads(slots, run="r", address="", port=0, cpu_only=True, timeout=1.0)
    assert room.needed(all_roads, "r", slots, buckets) == {node: mib * MIB for node, mib in needed.items()}


def test_a_node_with_too_little_is_named() -> None:
    room.check({0: 64 * MIB, 1: 64 * MIB}, {0: 64 * MIB, 1: 64 * MIB, 2: 0})
    with pytest.raises(TrainerFailure) as failure:
        room.check({0: 64 * MIB, 1: 300 * MIB}, {0: 64 * MIB, 1: 64 * MIB})
    assert failure.value.reason is FailureReason.INVALID_INPUT
    assert failure.value.message == (
        "/dev/shm of node 1 has 64 MiB free, and a weight sync takes 300 MiB of it: raise cluster.shmSize (in a "
        "container of your own, its --shm-size)"
    )


def test_this_machines_room_is_read() -> None:
    assert room.free() > 0
