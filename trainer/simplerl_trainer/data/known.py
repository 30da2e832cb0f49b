"""Public sets of mathematical questions that are known by name, as simpleRL-reason's evaluation files hold them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields
from simplerl_trainer.rewards.judge import Tolerance
from simplerl_trainer.samples import Prompt


@dataclass(frozen=True, slots=True)
class Known:
    """Where a set's records hold what."""

    fields: Fields
    tolerance: Tolerance | None = None
    """How far its numbers may differ; None where they are exact."""
    error: str | None = None
    """Key of a record's own absolute tolerance, for sets of which only some questions have one."""


SETS = {
    "gsm8k": Known(Fields(question="question", answer="answer")),
    "math500": Known(Fields(question="problem", answer="answer")),
    # measured quantities, rounded by their authors
    "minerva_math": Known(Fields(question="problem", answer="solution"), tolerance=Tolerance(relative=1e-2)),
    "olympiadbench": Known(Fields(question="question", answer="final_answer"), error="error"),
    "aime24": Known(Fields(question="problem", answer="answer")),
    "amc23": Known(Fields(question="problem", answer="answer")),
}


def tolerated(name: str, prompts: Sequence[Prompt]) -> list[Prompt]:
    """The prompts of a data set with the tolerances of the known one of that name; as they are where none is.

    Raises TrainerFailure(INVALID_INPUT) naming a question whose record holds no number there.
    """
    known = SETS.get(name)
    return list(prompts) if known is None else [replace(p, tolerance=_tolerance(known, p)) for p in prompts]


def _tolerance(known: Known, prompt: Prompt) -> Tolerance | None:
    if known.error is None or (own := prompt.record.get(known.error)) in (None, ""):
        return known.tolerance
    try:
        error = math.nan if isinstance(own, bool) else float(own)
    except (TypeError, ValueError, OverflowError):
        error = math.nan
    if not 0 <= error < math.inf:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"the record of {prompt.question[:60]!r} has {str(own)[:60]!r} under {known.error}: give a number of at "
            "least 0, or leave it out",
        )
    return Tolerance(absolute=error)
