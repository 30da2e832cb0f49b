"""Roads: how a bucket's flat tensor gets from a rank to the engines of a slot.

Weights reach each slot once and fan out inside it:

    SharedMemory   from the slot's own rank, or from its first engine, to the engines of the same pod, on CPU
    CudaIpc        the same on CUDA: buckets do not leave the GPU
    Broadcast      from rank 0 to the first engine of each slot without a rank (gloo on CPU, NCCL on CUDA)
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Buckets lie in files of /dev/shm that the slot's sender writes and every engine of the slot maps."""

    prefix: str
    """Path without the bucket's number, for example /dev/shm/simplerl-tiny-1a2b3-1-slot0-."""
    readers: tuple[int, ...]
    """The engines that read along this road, each through its worker in the slot: all of them for the sender, its own
    number for a receiver."""
    timeout: float
    """Seconds to wait for each bucket."""


@dataclass(frozen=True, slots=True)
class CudaIpc:
    """Buckets lie in buffers of the slot's GPU that its sender owns and every engine of the slot opens."""

    prefix: str
    """Path of the hand-over's files, as SharedMemory's."""
    readers: tuple[int, ...]
    """As SharedMemory's."""
    timeout: float
    """Seconds to wait for each bucket."""


Local = SharedMemory | CudaIpc
"""How buckets fan out inside a slot."""


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Buckets come by a broadcast from rank 0 in a process group of its own."""

    address: str
    port: int
    rank: int
    """This member's rank in the group; the sender is 0."""
    world_size: int
    backend: str
    """gloo or nccl."""
    timeout: float
    """Seconds to wait for each bucket and for the group to form."""
    forward: Local | None
    """Where this engine leaves each bucket for the slot's other engines; None where it is alone, and for the sender."""


Receiver = Local | Broadcast
"""How a worker of an engine gets its buckets."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What one rank sends. All ranks gather every bucket together, whether or not they send it."""

    broadcast: Broadcast | None
    """Rank 0 where some slots have no rank."""
    local: Local | None
    """A rank whose own slot holds engines."""
