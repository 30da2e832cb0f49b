"""Public sets of mathematical questions that are known by name, as simpleRL-reason's evaluation files hold them."""

from dataclasses import dataclass

from simplerl_api.spec.data import Fields


@dataclass(frozen=True, slots=True)
class Known:
    """Where a set's records hold what."""

    fields: Fields
    tolerance: float | None = None
    """Relative tolerance of its numbers; None where they are exact."""
    tolerance_key: str | None = None
    """Key of a record's own tolerance, which is absolute, for sets of which only some questions have one."""


SETS = {
    "gsm8k": Known(Fields(question="question", answer="answer")),
    "math500": Known(Fields(question="problem", answer="answer")),
    # measured quantities, rounded by their authors
    "minerva_math": Known(Fields(question="problem", answer="solution"), tolerance=1e-2),
    "olympiadbench": Known(Fields(question="question", answer="final_answer"), tolerance_key="error"),
    "aime24": Known(Fields(question="problem", answer="answer")),
    "amc23": Known(Fields(question="problem", answer="answer")),
}
