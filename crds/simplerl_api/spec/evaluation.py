"""How well the policy does on questions that it is not trained on."""

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from simplerl_api.spec.data import Fields, Questions
from simplerl_api.struct import Struct


class EvaluationSet(Questions):
    """A named data set of held-out questions: exactly one of file, hub, reasoningGym."""

    members = ("file", "hub", "reasoningGym")

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^./][^/]*$")]
    """Name in the status, the metrics and the samples' files, at most 200 characters without a slash, the first of them
    no dot; no two data sets share one. Under the names minerva_math and olympiadbench
    numbers may differ as far as those sets allow: by 1 %, and by each record's `error`."""
    fields: Fields | None = None
    """Keys of its records, for example `{question: problem}`. Absent: those of `data.fields`."""


TEMPERATURE_RULE = "evaluation.temperature must be 0 or from 0.01 to 2"


class Evaluation(Struct):
    """Evaluations run before the first step, after every everySteps steps and after the last.

    Accuracy is the share of responses that the first `math` or `task` reward calls right; without one of those, the
    share whose score is above 0.
    """

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        ("self.temperature == 0.0 || self.temperature >= 0.01", TEMPERATURE_RULE),
    )

    every_steps: int = Field(default=10, ge=1, le=1_000_000)
    """Steps between evaluations."""
    datasets: Annotated[list[EvaluationSet], Field(min_length=1, max_length=16)]
    """The data sets."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Temperature of the evaluation's samples: 0 takes the likeliest token, otherwise 0.01 to 2 as vLLM has it."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Tokens are drawn from the likeliest ones that hold this share of the probability. 1: from all."""
    max_new_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Longest response in tokens. Absent: that of rollout.sampling."""

    @field_validator("temperature")
    @classmethod
    def _zero_or_enough(cls, value: float) -> float:
        if 0 < value < 0.01:
            raise ValueError(TEMPERATURE_RULE)
        return value

    samples: int = Field(default=1, ge=1, le=1024)
    """Responses to each question; accuracy is the mean over all of them."""
