"""What is rewarded."""

from pydantic import Field

from simplerl_api.struct import Struct, Text, Union


class MathReward(Struct):
    """A rule-based judge of mathematical answers (math-verify).

    The answer is the last `\\boxed{…}` of the response or, where there is none, its last expression.
    """

    correct: float = Field(default=1.0, ge=-1000, le=1000)
    """Score of a right answer."""
    wrong: float = Field(default=0.0, ge=-1000, le=1000)
    """Score of a wrong or missing answer."""
    unboxed: float | None = Field(default=None, ge=-1000, le=1000)
    """Score of a response without a box, whatever it says; absent: such a response is judged by its last
    expression. simpleRL-reason used correct 1.0, wrong -0.5, unboxed -1.0."""
    timeout_seconds: float = Field(default=5.0, gt=0, le=600)
    """Seconds that one sample may take; then it is scored as wrong and counted as timed out."""


class Reward(Union):
    """A named reward with its weight: exactly one of math."""

    members = ("math",)

    name: Text
    """Name in metrics and samples."""
    weight: float = Field(default=1.0, ge=-1000, le=1000)
    """Weight in the sum of all rewards."""
    math: MathReward | None = None
    """The rule-based judge of mathematical answers."""
