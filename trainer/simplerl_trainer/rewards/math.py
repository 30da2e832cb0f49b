"""The math reward: what the judge's verdicts are worth.

Judging an inequality runs sympy, which may take any time: `outcome` belongs in a process that can be killed (see
workers). `quick_outcome` decides all others at once, with the same verdicts.
"""

from simplerl_api.spec.rewards import MathReward
from simplerl_trainer.rewards.judge import judging
from simplerl_trainer.rewards.judge.judgement import Judgement, Tolerance
from simplerl_trainer.rewards.outcome import Outcome, Verdict


def score(judgement: Judgement, rules: MathReward) -> float:
    """The score of a judgement."""
    if judgement.verdict is Verdict.EQUAL and (judgement.boxed or rules.unboxed is None):
        return rules.correct
    if not judgement.boxed and rules.unboxed is not None:
        return rules.unboxed
    return rules.wrong


def outcome(response: str, gold: str, rules: MathReward, tolerance: Tolerance | None = None) -> Outcome:
    """The outcome of a response; may take any time."""
    return _outcome(judging.judge(response, gold, tolerance), rules)


def quick_outcome(response: str, gold: str, rules: MathReward, tolerance: Tolerance | None = None) -> Outcome | None:
    """The outcome where none needs sympy, otherwise None."""
    try:
        return _outcome(judging.judge(response, gold, tolerance, quick=True), rules)
    except judging.Slow:
        return None


def warm_up() -> None:
    """The first inequality takes up to a second of sympy's imports."""
    judging.judge("\\boxed{x^2 < 4}", "(-2, 2)")


def _outcome(judgement: Judgement, rules: MathReward) -> Outcome:
    if rules.unboxed is not None and not judgement.boxed and judgement.verdict is not Verdict.BAD_GOLD:
        judgement = Judgement(Verdict.NO_ANSWER, why="there is no box in it")
    return Outcome(score(judgement, rules), judgement.verdict, judgement.extracted, judgement.why)
