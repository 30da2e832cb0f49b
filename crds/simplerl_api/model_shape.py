"""The numbers of a model's config.json that decide its size."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from simplerl_api.struct import Struct


class ModelShape(Struct):
    """The numbers of a config.json that decide a model's size."""

    vocabulary: int = Field(ge=1)
    """Rows of the embedding."""
    hidden: int = Field(ge=1)
    """Size of a hidden state."""
    intermediate: int = Field(ge=1)
    """Size of the feed-forward layers."""
    layers: int = Field(ge=1)
    """Decoder layers."""
    heads: int = Field(ge=1)
    """Query heads."""
    key_value_heads: int = Field(ge=1)
    """Key and value heads."""
    head: int = Field(ge=1)
    """Size of a head."""
    tied: bool = False
    """Whether the output layer is the embedding."""
    biases: bool = False
    """Whether queries, keys and values have biases."""
    head_norms: bool = False
    """Whether queries and keys are normed."""

    @property
    def body(self) -> int:
        """Parameters without the output layer."""
        queries, keys = self.heads * self.head, self.key_value_heads * self.head
        attention = 2 * self.hidden * queries + 2 * self.hidden * keys
        attention += (queries + 2 * keys) * self.biases + 2 * self.head * self.head_norms
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        return self.vocabulary * self.hidden + self.layers * layer + self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer is counted once."""
        return self.body + (0 if self.tied else self.vocabulary * self.hidden)


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """The shape that a config.json of a supported family describes.

    Raises ValueError naming a number that it lacks.
    """

    def number(key: str, otherwise: int | None = None) -> int:
        value = config.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"config.json has {key} {value!r}: give a model folder where it is a number")
        return value

    hidden, heads = number("hidden_size"), number("num_attention_heads")
    family = config.get("model_type")
    return ModelShape(
        vocabulary=number("vocab_size"),
        hidden=hidden,
        intermediate=number("intermediate_size"),
        layers=number("num_hidden_layers"),
        heads=heads,
        key_value_heads=number("num_key_value_heads", heads),
        head=number("head_dim", max(hidden // heads, 1)),
        tied=bool(config.get("tie_word_embeddings", False)),
        biases=family == "qwen2" or bool(config.get("attention_bias", False)),
        head_norms=family == "qwen3",
    )
