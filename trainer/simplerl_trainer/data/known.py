"""Public sets of mathematical questions that are known by name, as simpleRL-reason's evaluation files hold them."""

from dataclasses import dataclass

from simplerl_api.spec.data import Fields


@dataclass(frozen=True, slots=True)
class Known:
    """Where a set's records hold what."""

    fields: Fields
    subject: str | None = None
    """Key of the part of mathematics that a question belongs to."""
    tolerance: float | None = None
    """Relative tolerance of its numbers; None where they are exact."""
    tolerance_key: str | None = None
    """Key of a record's own tolerance, for sets of which only some questions have one."""


SETS = {
    "gsm8k": Known(Fields(question="question", answer="answer")),
    "math500": Known(Fields(question="problem", answer="answer"), subject="subject"),
    # measured quantities, rounded by their authors
    "minerva_math": Known(Fields(question="problem", answer="solution"), subject="type", tolerance=1e-2),
    "olympiadbench": Known(
        Fields(question="question", answer="final_answer"), subject="subfield", tolerance_key="error"
    ),
    "aime24": Known(Fields(question="problem", answer="answer")),
    "amc23": Known(Fields(question="problem", answer="answer")),
}

SUBJECTS = ("subject", "type", "subfield")
"""Where the subject is looked for in a set that is not known."""
