"""Buckets from one process to others: what is sent arrives, nothing is left, and a missing peer is named."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import ports
from simplerl_trainer.weights import handover, shared_memory, transport
from simplerl_trainer.weights.buckets import Bucket, Parameter, make_buckets
from simplerl_trainer.weights.receive import receive
from simplerl_trainer.weights.road import Broadcast, Receiver, Sender, SharedMemory
from simplerl_trainer.weights.send import send

CPU = torch.device("cpu")
PARAMETERS = [
    Parameter("a", "float32", (7, 3)),
    Parameter("b", "float32", (5,)),
    Parameter("c", "bfloat16", (4, 2)),
    Parameter("d", "bfloat16", ()),
    Parameter("e", "float32", (11, 2)),
]


@pytest.fixture
def road() -> Iterator[SharedMemory]:
    prefix = f"/dev/shm/simplerl-test-{uuid4().hex[:8]}-"
    yield SharedMemory(prefix, (0, 1), 5.0)
    assert handover.remove(prefix) == 0, "nothing is left"


@pytest.fixture
def group() -> Iterator[Broadcast]:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    yield Broadcast("127.0.0.1", port, 0, 3, "gloo", 5.0, None)
    transport.leave()


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return {p.name: torch.randn(p.shape, generator=made).to(getattr(torch, p.dtype)) for p in PARAMETERS}


def flats(buckets: Sequence[Bucket], values: dict[str, torch.Tensor]) -> Iterator[torch.Tensor]:
    for b in buckets:
        yield torch.cat([values[p.name].flatten() for p in b.parameters])


def taken(receiver: Receiver, buckets: Sequence[Bucket]) -> dict[str, torch.Tensor]:
    return {p.name: tensor for p, tensor in receive(receiver, buckets, CPU)}


def exchange(sender: Sender, receivers: Sequence[Receiver], seed: int) -> None:
    buckets = make_buckets(PARAMETERS, limit=60)
    assert len(buckets) == 4
    with ThreadPoolExecutor() as threads:
        got = [threads.submit(taken, r, buckets) for r in receivers]
        threads.submit(send, sender, flats(buckets, tensors(seed))).result(timeout=20)
        for future in got:
            values = future.result(timeout=20)
            assert values.keys() == tensors(seed).keys()
            for name, value in tensors(seed).items():
                assert torch.equal(values[name], value), name


def test_both_engines_of_a_slot_read_every_bucket_from_shared_memory(road: SharedMemory) -> None:
    for seed in range(3):
        exchange(Sender(None, road), [replace(road, readers=(0,)), replace(road, readers=(1,))], seed)


def test_a_broadcast_reaches_all_first_engines_and_its_group_is_formed_once(group: Broadcast) -> None:
    formed = []
    for seed in range(3):
        exchange(Sender(group, None), [replace(group, rank=1), replace(group, rank=2)], seed)
        formed.append(dict(transport._groups))
    assert len(formed[0]) == 3
    assert formed[0] == formed[1] == formed[2]


def test_a_group_on_other_roads_takes_the_place_of_the_one_before(group: Broadcast) -> None:
    for road in (group, replace(group, port=ports.hold())):
        road = replace(road, world_size=2)
        exchange(Sender(road, None), [replace(road, rank=1)], 0)
        assert {(k.port, k.rank) for k in transport._groups} == {(road.port, 0), (road.port, 1)}


def test_a_first_engine_passes_buckets_on(group: Broadcast, road: SharedMemory) -> None:
    group = replace(group, world_size=2)
    first = replace(group, rank=1, forward=road)
    exchange(Sender(group, None), [first, replace(road, readers=(0,)), replace(road, readers=(1,))], 0)


def test_a_rank_sends_along_both_roads(group: Broadcast, road: SharedMemory) -> None:
    group = replace(group, world_size=2)
    road = replace(road, readers=(4,))
    exchange(Sender(group, road), [replace(group, rank=1), road], 0)


def test_a_rank_without_roads_still_gathers_every_bucket() -> None:
    gathered = iter(list(flats(make_buckets(PARAMETERS), tensors())))
    send(Sender(None, None), gathered)
    assert list(gathered) == []


def test_a_rank_whose_road_fails_gathers_the_rest_since_the_others_gather_with_it(road: SharedMemory) -> None:
    gathered = iter(list(flats(make_buckets(PARAMETERS, limit=1), tensors())))
    with pytest.raises(TrainerFailure, match="engine 0 did not read weight bucket 0 within 0 s"):
        send(Sender(None, replace(road, timeout=0.1)), gathered)
    assert list(gathered) == []


def test_a_tensor_keeps_its_values_while_later_buckets_come(road: SharedMemory) -> None:
    buckets = make_buckets(PARAMETERS, limit=1)
    road = replace(road, readers=(0,))
    with ThreadPoolExecutor() as threads:
        sending = threads.submit(send, Sender(None, road), flats(buckets, tensors()))
        kept = [tensor for _, tensor in receive(road, buckets, CPU)]
        sending.result(timeout=20)
    assert all(torch.equal(k, v) for k, v in zip(kept, tensors().values(), strict=True))


def test_a_sender_is_at_most_two_buckets_ahead_of_a_reader(road: SharedMemory) -> None:
    road = replace(road, readers=(0,))
    buckets = make_buckets(PARAMETERS, limit=1)
    with ThreadPoolExecutor() as threads:
        sending = threads.submit(send, Sender(None, road), flats(buckets, tensors()))
        time.sleep(0.3)
        assert len(list(Path("/dev/shm").glob(Path(road.prefix).name + "*"))) == handover.WINDOW
        taken(road, buckets)
        sending.result(timeout=20)


def no_reader(road: SharedMemory, group: Broadcast) -> None:
    send(Sender(None, replace(road, readers=(8,))), flats(make_buckets(PARAMETERS), tensors()))


def no_writer(road: SharedMemory, group: Broadcast) -> None:
    taken(replace(road, readers=(8,)), make_buckets(PARAMETERS))


def no_receivers(road: SharedMemory, group: Broadcast) -> None:
    send(Sender(group, None), flats(make_buckets(PARAMETERS), tensors()))


def no_sender(road: SharedMemory, group: Broadcast) -> None:
    taken(replace(group, rank=1), make_buckets(PARAMETERS))


def another_size(road: SharedMemory, group: Broadcast) -> None:
    road = replace(road, readers=(8,))
    shared_memory.Writer(road).write(torch.zeros(3))
    try:
        taken(road, make_buckets(PARAMETERS[:1]))
    finally:
        handover.remove(road.prefix)


@pytest.mark.parametrize(
    ("fails", "sentence"),
    [
        pytest.param(no_reader, "engine 8 did not read weight bucket 0 within 1 s", id="an engine does not read"),
        pytest.param(no_writer, r"the sender of \S+ did not write weight bucket 0 within 1 s", id="no one writes"),
        pytest.param(no_receivers, "the other 2 members of the weights' broadcast did not", id="engines do not come"),
        pytest.param(no_sender, r"rank 0 at 127.0.0.1:\d+ did not form the group", id="rank 0 does not come"),
        pytest.param(another_size, "holds 12 bytes where its parameters have 84", id="the models differ"),
    ],
)
def test_a_sync_that_cannot_be_names_the_peer_where(
    fails: Callable[[SharedMemory, Broadcast], None], sentence: str, road: SharedMemory, group: Broadcast
) -> None:
    with pytest.raises(TrainerFailure, match=sentence) as failure:
        fails(replace(road, timeout=1.0), replace(group, timeout=1.0))
    assert failure.value.reason is FailureReason.WEIGHT_SYNC_FAILED


def test_a_full_shared_memory_is_a_sentence_and_not_a_signal(tmp_path: Path) -> None:
    program = (
        "import resource, torch\n"
        "from simplerl_trainer.weights.shared_memory import Writer\n"
        "from simplerl_trainer.weights.road import SharedMemory\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"Writer(SharedMemory({str(tmp_path / 'full-')!r}, (0,), 1.0)).write(torch.zeros(10_000))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=os.environ, check=False
    )
    assert "has no room for a weight bucket of 0 MiB" in ended.stderr
    assert "raise cluster.shmSize" in ended.stderr
    assert list(tmp_path.iterdir()) == []
