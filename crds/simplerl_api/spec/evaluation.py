"""How well the policy does on questions that it is not trained on."""

from typing import Annotated

from pydantic import Field

from simplerl_api.spec.data import Questions
from simplerl_api.struct import Struct, Text


class EvaluationSet(Questions):
    """A named data set of held-out questions: exactly one of file, reasoningGym."""

    members = ("file", "reasoningGym")

    name: Text
    """Name in the status and the metrics."""


class Evaluation(Struct):
    """Evaluations run before the first step, after every everySteps steps and after the last."""

    every_steps: int = Field(default=10, ge=1, le=1_000_000)
    """Steps between evaluations."""
    datasets: Annotated[list[EvaluationSet], Field(min_length=1, max_length=16)]
    """The data sets."""
    temperature: float = Field(default=0.0, ge=0, le=10)
    """Temperature of the evaluation's samples; 0 takes the likeliest token."""
    max_new_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """Longest response in tokens. Absent: that of rollout.sampling."""
    samples: int = Field(default=1, ge=1, le=1024)
    """Responses to each question; accuracy is the mean over all of them."""
