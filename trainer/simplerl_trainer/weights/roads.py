"""Which road each rank and each engine uses, decided from the slots."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from simplerl_api.plan import Slot
from simplerl_trainer.weights.road import Broadcast, CudaIpc, Local, Receiver, Sender, SharedMemory

FOLDER = "/dev/shm"


@dataclass(frozen=True, slots=True)
class Roads:
    """The roads of a run."""

    senders: Mapping[int, Sender]
    """By rank; a rank that only gathers has a sender without roads."""
    receivers: Mapping[int, tuple[Receiver, ...]]
    """By engine: a road for each of its workers, in the order of its slots."""


def prefix(run: str, slot: int | None = None) -> str:
    """Where the buckets of a run, or of one of its slots, lie."""
    start = f"{FOLDER}/simplerl-{run}-"
    return start if slot is None else f"{start}slot{slot}-"


def roads(
    slots: Sequence[Slot],
    *,
    run: str,
    address: str,
    port: int,
    cpu_only: bool,
    timeout: float,
    engines: Collection[int] | None = None,
) -> Roads:
    """The roads between the ranks and engines of `slots`.

    `run` is unique among the runs that share a machine; `address` and `port` are rank 0's, the port a free one;
    `timeout` is the seconds that one bucket may take; `engines` are those that live, by default all. Weights reach each
    slot once: from its own rank, or by a broadcast to its first engine, which passes them on. An engine over several
    slots takes part in the road of each, through the worker that lives there.
    """
    living = {s.index: tuple(e for e in s.engines if engines is None or e in engines) for s in slots}
    inside = SharedMemory if cpu_only else CudaIpc

    def local(slot: int, readers: tuple[int, ...]) -> Local | None:
        return inside(prefix(run, slot), readers, timeout) if readers else None

    senders = {
        s.rank: Sender(broadcast=None, local=local(s.index, living[s.index])) for s in slots if s.rank is not None
    }
    workers: dict[tuple[int, int], Receiver] = {  # by engine and slot
        (e, s.index): inside(prefix(run, s.index), (e,), timeout) for s in slots for e in living[s.index]
    }
    far = [s for s in slots if s.rank is None and living[s.index]]
    if far:
        backend = "gloo" if cpu_only else "nccl"
        group = Broadcast(address, port, 0, len(far) + 1, backend, timeout, forward=None)
        senders[0] = replace(senders[0], broadcast=group)
        for member, slot in enumerate(far, start=1):
            first, *others = living[slot.index]
            forward = local(slot.index, tuple(others))
            workers[first, slot.index] = replace(group, rank=member, forward=forward)
    receivers = {e: tuple(road for (of, _), road in workers.items() if of == e) for e, _ in sorted(workers)}
    return Roads(senders, receivers)


def for_version(all_roads: Roads, version: int) -> Roads:
    """The roads of one sync: its files bear the version, so that none is taken for another sync's."""

    def local(road: Local | None) -> Local | None:
        return replace(road, prefix=f"{road.prefix}v{version}-") if road else None

    def received(road: Receiver) -> Receiver:
        match road:
            case SharedMemory(prefix=start) | CudaIpc(prefix=start):
                return replace(road, prefix=f"{start}v{version}-")
            case Broadcast(forward=forward):
                return replace(road, forward=local(forward))

    return Roads(
        {r: replace(s, local=local(s.local)) for r, s in all_roads.senders.items()},
        {e: tuple(map(received, roads)) for e, roads in all_roads.receivers.items()},
    )
