"""What the judge says of a response, and how exact it is asked to be."""

from dataclasses import dataclass

from simplerl_trainer.rewards.outcome import Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge says of a response."""

    verdict: Verdict
    """EQUAL, DIFFERENT, NO_ANSWER, BAD_GOLD or TIMEOUT."""
    extracted: str = ""
    """The answer that was read from the response."""
    why: str = ""
    """A reason wherever the verdict is not EQUAL."""
    boxed: bool = False
    """Whether the response holds a box."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may lie from the gold one."""

    relative: float = 0.0
    """Share of the gold number's size."""
    absolute: float = 0.0
