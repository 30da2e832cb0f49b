"""Broadcast groups: rank 0 and the first engine of each slot without a rank.

A group stands beside torch's default group, so that a rank keeps its own and an engine vLLM's. It is formed at the
first sync and kept until another is formed; one that failed is dropped.
"""

import socket
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch.distributed import BroadcastOptions, ProcessGroup, TCPStore

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import ports
from simplerl_trainer.weights.road import Broadcast

SENDER = 0


@dataclass(frozen=True, slots=True)
class _Key:
    address: str
    port: int
    rank: int
    world_size: int


@dataclass(frozen=True, slots=True)
class _Group:
    group: ProcessGroup
    store: TCPStore  # the group ends with its store


_groups: dict[_Key, _Group] = {}


def broadcast(road: Broadcast, flat: torch.Tensor, number: int) -> None:
    """Sends a bucket, or receives it into `flat` [numel]; forms the group where this is its first one.

    Raises TrainerFailure(WeightSyncFailed), which names the peer, where the group does not form or the bucket does not
    come within the road's time-out.
    """
    key = _Key(road.address, road.port, road.rank, road.world_size)
    options = BroadcastOptions()
    options.rootRank = SENDER
    options.timeout = timedelta(seconds=road.timeout)
    doing = "form the group"
    try:
        if key not in _groups:
            _leave_others(road.port)
            _groups[key] = _form(road)
        doing = f"pass weight bucket {number}"
        data = flat.view(-1).view(torch.uint8)  # gloo knows fewer types than torch
        _groups[key].group.broadcast([data], options).wait()
    except RuntimeError as error:
        _groups.pop(key, None)
        first_line = str(error).strip().splitlines()[0]
        raise TrainerFailure(
            FailureReason.WEIGHT_SYNC_FAILED,
            f"{_peer(road)} did not {doing} with member {road.rank} of {road.world_size} (time-out "
            f"{road.timeout:.0f} s): {first_line}",
        ) from error


def leave() -> None:
    """Ends all groups of this process."""
    _groups.clear()


def _leave_others(port: int) -> None:
    """Ends the groups of earlier roads: each laying of roads has a port of its own."""
    for key in [k for k in _groups if k.port != port]:
        _groups.pop(key, None)


def _form(road: Broadcast) -> _Group:
    timeout = timedelta(seconds=road.timeout)
    store = TCPStore(
        road.address,
        road.port,
        road.world_size,
        is_master=road.rank == SENDER,
        timeout=timeout,
        wait_for_workers=False,
        master_listen_fd=ports.take(road.port) if road.rank == SENDER else None,
    )
    match road.backend:
        case "gloo":
            from torch.distributed import ProcessGroupGloo

            options = ProcessGroupGloo._Options()
            options._timeout = timeout
            # By default gloo listens on what the host's name resolves to, which other machines may not reach.
            options._devices = [ProcessGroupGloo.create_device(hostname=_own_address(road))]
            return _Group(ProcessGroupGloo(store, road.rank, road.world_size, options), store)
        case "nccl":
            from torch.distributed import ProcessGroupNCCL

            nccl = ProcessGroupNCCL.Options()
            nccl._timeout = timeout
            return _Group(ProcessGroupNCCL(store, road.rank, road.world_size, nccl), store)
        case other:
            raise ValueError(f"the backend of a broadcast is {other!r}: use gloo or nccl")


def _own_address(road: Broadcast) -> str:
    """This machine's address on the way to the sender."""
    if road.rank == SENDER:
        return road.address
    family, kind, _, _, address = socket.getaddrinfo(road.address, road.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # sends nothing
        return str(probe.getsockname()[0])


def _peer(road: Broadcast) -> str:
    if road.rank == SENDER:
        return f"the other {road.world_size - 1} members of the weights' broadcast"
    return f"rank 0 at {road.address}:{road.port}"
