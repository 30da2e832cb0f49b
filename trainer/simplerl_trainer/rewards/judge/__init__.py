"""The judge of mathematical answers."""

from simplerl_api.spec.rewards import MathReward
from simplerl_trainer.rewards import math
from simplerl_trainer.rewards.judge.judgement import Judgement, Tolerance

__all__ = ["Judgement", "Tolerance", "judge"]


def judge(response: str, gold: str, tolerance: float | Tolerance | None = None) -> Judgement:
    """Whether the answer in a response is the gold one; a `tolerance` that is a number is relative.

    `gold` is an answer, or a whole solution. May take any time: `simplerl_trainer.rewards.score` runs it in processes
    that can be killed.
    """
    return math.judge(response, gold, MathReward())
