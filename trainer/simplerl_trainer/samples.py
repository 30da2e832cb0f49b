"""Prompts, samples and scores: what flows through the loop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from simplerl_api.spec.data import ReasoningGym
from simplerl_trainer.rewards.judge.judgement import Tolerance


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question ready to be asked."""

    row: int
    """Position in its data set."""
    question: str
    answer: str
    token_ids: tuple[int, ...]
    record: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The data set's row, for rewards that look at it."""
    gym: ReasoningGym | None = field(default=None, compare=False, repr=False)
    """The generator that made the question, if one did."""
    tolerance: Tolerance | None = field(default=None, compare=False, repr=False)
    """How far the answer's numbers may differ; None where they are exact."""


class Finish(StrEnum):
    """Why a response ended."""

    STOP = "Stop"
    """The policy drew an end-of-sequence token."""
    LENGTH = "Length"
    """It was cut at maxNewTokens."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One response to a prompt."""

    id: int
    """Position in the step: position of the prompt x samplesPerPrompt + position of the sample."""
    prompt: Prompt
    response_ids: tuple[int, ...]
    """At least one token; the end-of-sequence token included where it was drawn."""
    finish: Finish
    weights_version: int
    """Version of the weights that it was drawn from."""
    logprobs: tuple[float, ...] | None
    """The engine's log-probabilities of response_ids, nats; only on the step's probe."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a response is worth."""

    value: float
    """The weighted sum of all rewards."""
    verdict: str
    """The judge's word: equal, different, no_answer, bad_gold, timeout, failed. It is that of the first math or task
    reward; without one a response is right (equal) whose value is above 0."""
    extracted: str = ""
    """The answer that was read from the response."""
    why: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    """The unweighted score of each reward by its name."""
    failed: tuple[str, ...] = ()
    """Names of the rewards that could not score it."""
