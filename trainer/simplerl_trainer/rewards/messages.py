"""What the driver and a reward process say to each other: pickled messages, each after its length."""

import pickle
import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from simplerl_api.spec.data import ReasoningGym
from simplerl_api.spec.rewards import Reward
from simplerl_trainer.rewards.judge.judgement import Tolerance

HEADER = struct.Struct("<Q")
"""The length of a message in bytes."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The first message to a process."""

    reward: Reward
    field: str
    """Its path in the spec, for messages: `rewards[0]`."""
    memory_limit: int
    """Bytes of data that the process may hold."""
    code: str = ""
    """The Python file of a reward that has one."""
    tokenizer_file: str = ""
    """Needed for cases whose texts are token ids."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The first message from a process."""

    fault: str = ""
    """The sentence about a reward that cannot be used; the process ends then."""
    concurrent: bool = False
    """Whether it works on all cases of a batch at once."""


@dataclass(frozen=True, slots=True)
class Case:
    """One response to score."""

    response: bytes | str
    """Token ids as packed by `pack`, or the text itself."""
    answer: str
    """The gold answer as it stands in the data set."""
    prompt: bytes | str = ""
    """As `response`."""
    question: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    """The data set's row."""
    truncated: bool = False
    """Whether the response was cut at maxNewTokens."""
    gym: ReasoningGym | None = None
    """The generator that made the question, if one did."""
    tolerance: Tolerance | None = None
    """How far a number may lie from the gold one."""


def pack(ids: Sequence[int]) -> bytes:
    """Token ids as 4 bytes each: ten times as quick to pickle as a tuple of integers."""
    return array("I", ids).tobytes()


def unpack(ids: bytes) -> list[int]:
    found = array("I")
    found.frombytes(ids)
    return found.tolist()


def encode(message: Any) -> bytes:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


def receive(stream: BinaryIO) -> Any:
    """The next message; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    return pickle.loads(stream.read(length))
