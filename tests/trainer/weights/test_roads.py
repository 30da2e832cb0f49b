"""Which road each rank and engine uses: weights reach each slot once and fan out inside it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.plan import Slot
from simplerl_trainer.weights.road import Broadcast, CudaIpc, Sender, SharedMemory
from simplerl_trainer.weights.roads import Roads, for_version, prefix, roads


def slot(index: int, rank: int | None, *engines: int) -> Slot:
    return Slot(index=index, node=0, gpu=index, rank=rank, engines=engines)


def made(*slots: Slot, engines: list[int] | None = None) -> Roads:
    return roads(slots, run="r", address="10.0.0.1", port=4000, cpu_only=True, timeout=9.0, engines=engines)


def shared(slot: int, *readers: int) -> SharedMemory:
    return SharedMemory(f"/dev/shm/simplerl-r-slot{slot}-", readers, 9.0)


def member(rank: int, size: int, forward: SharedMemory | None = None) -> Broadcast:
    return Broadcast("10.0.0.1", 4000, rank, size, "gloo", 9.0, forward)


@pytest.mark.parametrize(
    ("roads", "senders", "receivers"),
    [
        pytest.param(
            made(slot(0, 0, 0, 1), slot(1, 1, 2)),
            {0: Sender(None, shared(0, 0, 1)), 1: Sender(None, shared(1, 2))},
            {0: (shared(0, 0),), 1: (shared(0, 1),), 2: (shared(1, 2),)},
            id="colocated: each rank writes for its own slot's engines",
        ),
        pytest.param(
            made(slot(0, 0), slot(1, 1), slot(2, None, 0)),
            {0: Sender(member(0, 2), None), 1: Sender(None, None)},
            {0: (member(1, 2),)},
            id="disaggregated: rank 0 broadcasts to the only engine",
        ),
        pytest.param(
            made(slot(0, 0), slot(1, None, 0, 1, 2), slot(2, None, 3)),
            {0: Sender(member(0, 3), None)},
            {0: (member(1, 3, shared(1, 1, 2)),), 1: (shared(1, 1),), 2: (shared(1, 2),), 3: (member(2, 3),)},
            id="disaggregated: a slot's first engine passes buckets on to its others",
        ),
        pytest.param(
            made(slot(0, 0), slot(1, None, 0, 1), slot(2, None, 2), engines=[1]),
            {0: Sender(member(0, 2), None)},
            {1: (member(1, 2),)},
            id="lost engines have no road, and the next of the slot is its first",
        ),
        pytest.param(
            made(slot(0, 0, 0), slot(1, 1, 0)),
            {0: Sender(None, shared(0, 0)), 1: Sender(None, shared(1, 0))},
            {0: (shared(0, 0), shared(1, 0))},
            id="an engine over two slots with ranks: each worker reads from the rank of its own slot",
        ),
        pytest.param(
            made(slot(0, 0), slot(1, None, 0, 1), slot(2, None, 0, 1)),
            {0: Sender(member(0, 3), None)},
            {
                0: (member(1, 3, shared(1, 1)), member(2, 3, shared(2, 1))),
                1: (shared(1, 1), shared(2, 1)),
            },
            id="two engines over two slots without a rank: weights reach each slot once",
        ),
    ],
)
def test_roads(roads: Roads, senders: Mapping[int, Sender], receivers: Mapping[int, tuple[object, ...]]) -> None:
    assert roads == Roads(senders, receivers)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=6))
def test_every_engine_is_read_to_once_and_members_of_the_broadcast_are_numbered_through(
    shapes: list[tuple[bool, int]],
) -> None:
    slots, rank, engine = [], 0, 0
    for index, (trains, count) in enumerate([(True, shapes[0][1]), *shapes[1:]]):
        slots.append(slot(index, rank if trains else None, *range(engine, engine + count)))
        rank, engine = rank + trains, engine + count
    all_roads = made(*slots)
    assert set(all_roads.receivers) == set(range(engine))
    assert set(all_roads.senders) == set(range(rank))
    receivers = {e: only for e, (only,) in all_roads.receivers.items()}
    broadcast = [r for r in receivers.values() if isinstance(r, Broadcast)]
    written = [r for s in all_roads.senders.values() if s.local for r in s.local.readers]
    written += [r for b in broadcast if b.forward for r in b.forward.readers]
    assert sorted(written) == sorted(e for e, r in receivers.items() if isinstance(r, SharedMemory))
    assert sorted(b.rank for b in broadcast) == list(range(1, len(broadcast) + 1))
    assert {b.world_size for b in broadcast} <= {len(broadcast) + 1}


def test_on_cuda_buckets_stay_on_the_gpu_inside_a_slot_and_take_nccl_between_them() -> None:
    slots = (slot(0, 0, 0, 1), slot(1, None, 2, 3))
    got = roads(slots, run="r", address="10.0.0.1", port=4000, cpu_only=False, timeout=9.0)

    def inside(slot: int, *readers: int) -> CudaIpc:
        return CudaIpc(f"/dev/shm/simplerl-r-slot{slot}-", readers, 9.0)

    group = Broadcast("10.0.0.1", 4000, 0, 2, "nccl", 9.0, None)
    assert got.senders == {0: Sender(group, inside(0, 0, 1))}
    first = Broadcast("10.0.0.1", 4000, 1, 2, "nccl", 9.0, inside(1, 3))
    assert got.receivers == {0: (inside(0, 0),), 1: (inside(0, 1),), 2: (first,), 3: (inside(1, 3),)}
    assert for_version(got, 7).receivers[1] == (CudaIpc("/dev/shm/simplerl-r-slot0-v7-", (1,), 9.0),)


def test_the_files_of_a_sync_bear_its_version() -> None:
    own = for_version(made(slot(0, 0, 0), slot(1, None, 1, 2)), 7)
    start = "/dev/shm/simplerl-r-slot"
    assert own.senders[0].local == SharedMemory(f"{start}0-v7-", (0,), 9.0)
    assert own.receivers[0] == (SharedMemory(f"{start}0-v7-", (0,), 9.0),)
    assert own.receivers[1] == (member(1, 2, SharedMemory(f"{start}1-v7-", (2,), 9.0)),)


def test_all_files_of_a_run_have_its_prefix() -> None:
    assert prefix("tiny-1a2b3-1", 4).startswith(prefix("tiny-1a2b3-1"))
