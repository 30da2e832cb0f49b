"""Where questions and their answers come from, and how a question becomes a prompt."""

from typing import Annotated

from pydantic import Field, JsonValue

from simplerl_api.struct import Path, Prose, Struct, Text, Union


class ReasoningGym(Struct):
    """A generated data set of the reasoning-gym library (https://github.com/open-thought/reasoning-gym)."""

    dataset: Text
    """Name of the generator, for example `basic_arithmetic`."""
    size: int = Field(default=1000, ge=1, le=10_000_000)
    """Number of questions."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of the generator."""
    config: Annotated[dict[str, JsonValue], Field(max_length=64)] = Field(default_factory=dict)
    """Further settings of the generator, as its own documentation names them."""


class Questions(Union):
    """A data set: exactly one of file, reasoningGym."""

    file: Path | None = None
    """A file of questions at this path in the head's container: JSON Lines (`.jsonl`) or one JSON array (`.json`)."""
    reasoning_gym: ReasoningGym | None = None
    """Questions made by reasoning-gym."""


class Fields(Struct):
    """Names of the keys that hold a question and its answer."""

    question: Text = "question"
    """Key of the question's text."""
    answer: Text = "answer"
    """Key of the answer: a value, or a worked solution that ends in `#### value` or in a box."""


class Data(Struct):
    """Training questions."""

    train: Questions
    """The training questions. Those that also stand in an evaluation data set are dropped and counted."""
    prompt_template: Prose | None = Field(default=None, min_length=1)
    """How a question becomes a prompt: `qwen-boxed` (simpleRL-reason's), `chat` (the tokenizer's chat template), or a
    literal text with `{question}` in it. Absent: `chat` where the tokenizer has a chat template, else `{question}`."""
    fields: Fields = Field(default_factory=Fields)
    """Keys of the question and the answer in each record."""
    max_prompt_tokens: int = Field(default=1024, ge=1, le=1_000_000)
    """Longest prompt in tokens; longer ones are dropped and counted."""
