"""Where questions and their answers come from, and how a question becomes a prompt."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from simplerl_api.spec.hub import HubQuestions
from simplerl_api.struct import Path, Prose, Struct, Text, Union


class ReasoningGym(Struct):
    """A generated data set of the reasoning-gym library."""

    dataset: Text
    """Name of the generator, for example `basic_arithmetic`."""
    size: int = Field(default=1000, ge=1, le=10_000_000)
    """Number of questions."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of the generator."""
    config: Annotated[dict[str, JsonValue], Field(max_length=64)] = Field(default_factory=dict)
    """Further settings of the generator, as its own documentation names them."""


class Questions(Union):
    """A data set: exactly one of file, hub, reasoningGym."""

    file: Path | None = None
    """Questions at this path in the head's container: JSON Lines (`.jsonl`), one JSON array (`.json`), Parquet
    (`.parquet`), or a folder of such files, which are read in the order of their names."""
    hub: HubQuestions | None = None
    """A data set of a Hugging Face hub."""
    reasoning_gym: ReasoningGym | None = None
    """Questions made by reasoning-gym."""


class Fields(Struct):
    """Names of the keys that hold a question, its answer and its level."""

    question: Text = "question"
    """Key of the question's text. Absent: question."""
    answer: Text | None = None
    """Key of the answer: a value, or a worked solution that ends in `#### value` or in a box. Absent: `gt_answer` in
    records that have it (simpleRL-reason's files do), else `answer`; a record with neither is asked all the same where
    no reward judges answers."""
    level: Text = "level"
    """Key of the level that `data.levels` looks at. Absent: level."""


LEVELS_RULE = "data.levels.min must not be greater than data.levels.max"


class Levels(Struct):
    """A range of levels, both ends included. `5`, `"5"` and `"Level 5"` are the same level."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (("self.min <= self.max", LEVELS_RULE),)

    min: int = Field(ge=0, le=1000)
    """The lowest level that is kept."""
    max: int = Field(ge=0, le=1000)
    """The highest level that is kept."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(LEVELS_RULE)
        return self


SLOT = "{question}"
"""Where a literal template takes the question."""
TEMPLATE_RULE = (
    f"data.promptTemplate has no {SLOT} in it: add it, name qwen-boxed or chat, or leave it out for the tokenizer's own"
)


class Data(Struct):
    """Training questions."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "!has(self.promptTemplate) || self.promptTemplate in ['qwen-boxed', 'chat'] || "
            f"self.promptTemplate.contains('{SLOT}')",
            TEMPLATE_RULE,
        ),
    )

    train: Questions
    """The training questions. Those that also stand in an evaluation data set are dropped and counted."""
    prompt_template: Prose | None = Field(default=None, min_length=1)
    """How a question becomes a prompt: `qwen-boxed` (simpleRL-reason's), `chat` (the tokenizer's chat template), or a
    literal text with `{question}` in it. Absent: `chat` where the tokenizer has a chat template, else `{question}`."""
    fields: Fields = Field(default_factory=Fields)
    """Keys of each record, in training and evaluation data sets."""
    levels: Levels | None = None
    """Levels of the training questions that are kept; others, and records whose level cannot be read, are dropped and
    counted. Absent: all. simpleRL-reason used 3 to 5 of MATH."""
    max_prompt_tokens: int = Field(default=1024, ge=1, le=1_000_000)
    """Longest prompt in tokens; longer ones are dropped and counted."""

    @field_validator("prompt_template")
    @classmethod
    def _takes_the_question(cls, value: str | None) -> str | None:
        if value not in (None, "qwen-boxed", "chat") and SLOT not in value:
            raise ValueError(TEMPLATE_RULE)
        return value
