"""The judge of mathematical answers: `judge("so it is \\\\boxed{1/2}", "0.5").verdict` is `equal`.

The policy is docs/judge.md. The answer is read out of the response (reading), both texts are brought into one dialect
(dialect, tokens), parsed into terms (parsing, answer), and the terms are compared (comparison): exactly where both are
rational (exact), else to 40 digits at several places (numeric). Only inequalities need sympy (inequalities).
"""

from simplerl_trainer.rewards.judge.judgement import Judgement, Tolerance

__all__ = ["Judgement", "Tolerance", "judge"]


def judge(response: str, gold: str, tolerance: float | Tolerance | None = None) -> Judgement:
    """Whether the answer in a response is the gold one; a `tolerance` that is a number is relative.

    `gold` is an answer, or a whole solution with a box or `####`. Inequalities of one variable are solved by sympy,
    which may take any time: `simplerl_trainer.rewards.score` runs it in processes that can be killed.
    """
    from simplerl_trainer.rewards.judge import judging  # mpmath, only where answers are judged

    return judging.judge(response, gold, tolerance)
