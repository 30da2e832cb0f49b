"""How much of /dev/shm a sync takes, known before a model is loaded.

Containers often have 64 MiB (https://github.com/NVIDIA/nccl/issues/525): it is better to hear that before GPUs are
filled than at the first sync.
"""

import os
from collections.abc import Mapping, Sequence

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Slot
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.handover import WINDOW
from simplerl_trainer.weights.road import SharedMemory
from simplerl_trainer.weights.roads import FOLDER, Roads, prefix

MIB = 2**20
QUEUES = 256 * MIB
"""What vLLM wants to find free where an engine's workers are processes of their own; it hardly uses it."""


def free() -> int:
    """Bytes of /dev/shm that are free on this machine."""
    room = os.statvfs(FOLDER)
    return room.f_bavail * room.f_frsize


def needed(all_roads: Roads, run: str, slots: Sequence[Slot], buckets: Sequence[Bucket]) -> Mapping[int, int]:
    """Bytes of /dev/shm that a sync of `run` takes at once, by node; nodes that need none are left out.

    In each slot whose engines read from shared memory: WINDOW unread buckets, and the one that is being loaded. Where
    engines span slots: at least QUEUES.
    """
    sizes = [b.nbytes for b in buckets]
    at_once = min(sum(sizes), (WINDOW + 1) * max(sizes, default=0))
    read = {r.prefix for of_engine in all_roads.receivers.values() for r in of_engine if isinstance(r, SharedMemory)}
    need: dict[int, int] = {}
    for slot in slots:
        if prefix(run, slot.index) in read:
            need[slot.node] = need.get(slot.node, 0) + at_once
    for slot in slots:
        if any(len(all_roads.receivers[e]) > 1 for e in slot.engines):
            need[slot.node] = max(need.get(slot.node, 0), QUEUES)
    return need


def check(needs: Mapping[int, int], has: Mapping[int, int]) -> None:
    """Compares bytes needed with bytes free, by node.

    Raises TrainerFailure(INVALID_INPUT) naming the node and both amounts.
    """
    for node, need in needs.items():
        if has[node] < need:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"{FOLDER} of node {node} has {has[node] / MIB:.0f} MiB free, and a weight sync takes "
                f"{need / MIB:.0f} MiB of it: raise cluster.shmSize (in a container of your own, its --shm-size)",
            )
