"""A link of the chain from a job's YAML to its training, and what the doctor says of it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class State(StrEnum):
    """What a link is."""

    OK = "ok"
    BROKEN = "broken"
    WAITS = "waits"
    """Nothing is wrong: it is not its turn yet, or the job wants nothing more. What comes after is not looked at."""
    UNSEEN = "not seen"
    """It cannot be seen with the user's rights; the walk goes on."""
    NOT_REACHED = "not reached"
    """A link before it does not hold."""


CHAIN = (
    "job", "operator", "standing", "RayCluster", "pods",
    "ports", "lock", "Ray nodes", "Ray job", "driver", "engines",
)  # fmt: skip
"""All links, in the order in which they are walked."""


@dataclass(frozen=True)
class Link:
    """One link."""

    name: str
    state: State
    sentence: str = ""

    @property
    def ends(self) -> bool:
        """Whether nothing that comes after it can be judged."""
        return self.state in (State.BROKEN, State.WAITS)

    def document(self) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(self).items()}


def ok(name: str, sentence: str) -> Link:
    return Link(name, State.OK, sentence)


def broken(name: str, sentence: str) -> Link:
    return Link(name, State.BROKEN, sentence)


def waits(name: str, sentence: str) -> Link:
    return Link(name, State.WAITS, sentence)


def unseen(name: str, sentence: str) -> Link:
    return Link(name, State.UNSEEN, sentence)


def filled(walked: Sequence[Link]) -> list[Link]:
    """The whole chain: those that were walked, and those that were not reached."""
    return [*walked, *(Link(name, State.NOT_REACHED) for name in CHAIN[len(walked) :])]
