"""What a reward says of one response."""

import math
from dataclasses import dataclass
from enum import StrEnum

from simplerl_api.spec.rewards import Reward


class Verdict(StrEnum):
    """What became of a response."""

    EQUAL = "equal"
    """Its answer is right."""
    DIFFERENT = "different"
    """Its answer is another one."""
    NO_ANSWER = "no_answer"
    """It holds no answer."""
    BAD_GOLD = "bad_gold"
    """The data set's answer cannot be read, so no response can be right."""
    SCORED = "scored"
    """It got a score from a reward that does not call answers right or wrong."""
    TIMEOUT = "timeout"
    """Scoring it took longer than timeoutSeconds."""
    FAILED = "failed"
    """It could not be scored; `why` says why."""


LARGEST = 1e30
"""Most that a score may be, up or down: weighted sums and the ranks' float32 hold it."""
FAILURES = (Verdict.TIMEOUT, Verdict.FAILED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The score of one response by one reward."""

    score: float
    """Unweighted."""
    verdict: Verdict
    extracted: str = ""
    """The answer that was read from the response."""
    why: str = ""


def unusable(score: int | float) -> str:
    """What is wrong with a number as a score, to follow "gave"; empty where nothing is."""
    if not isinstance(score, int) and not math.isfinite(score):
        return f"{score}, which is not finite"
    # an int may be too large for a float, and to be shown
    return "" if abs(score) <= LARGEST else f"a number beyond {LARGEST:g}: scale it down"


def failure(reward: Reward, verdict: Verdict, why: str) -> Outcome:
    """The outcome of a response that could not be scored."""
    return Outcome(failure_score(reward), verdict, why=why)


def failure_score(reward: Reward) -> float:
    """What a response gets that could not be scored."""
    if reward.math is not None:
        return reward.math.wrong
    if reward.python is not None:
        return reward.python.failed
    if reward.http is not None:
        return reward.http.failed
    return 0.0  # the lowest score of reasoning-gym's scorers
