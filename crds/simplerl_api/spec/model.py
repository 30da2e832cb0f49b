"""Which model is trained."""

from pydantic import Field

from simplerl_api.spec.hub import HubModel
from simplerl_api.struct import Path, Struct, Text, Union


class TinyModel(Struct):
    """A toy model built on the spot, for smoke tests without a download.

    A Llama of 0.7 million parameters with a tokenizer for arithmetic, shown additions of four small numbers
    (`Calculate 3 + 10 + 0 + 7.`) until about a third of its sampled answers to unseen ones are right.
    """

    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of its weights and of its warm-up."""
    warmup_accuracy: float = Field(default=0.33, ge=0, le=0.9)
    """Accuracy, 0 to 1, of answers sampled at temperature 1 at which its warm-up ends; 0 leaves the weights random."""


class Model(Union):
    """The model to train: exactly one of hub, path, tiny. Families: Qwen2, Qwen2.5, Qwen3, Llama."""

    members = ("hub", "path", "tiny")

    hub: HubModel | None = None
    """A model of a Hugging Face hub."""
    path: Path | None = None
    """A Hugging Face folder (config.json, safetensors, tokenizer) at this path in every container: mount it with
    `cluster.volumes`."""
    tiny: TinyModel | None = None
    """A toy model built on the spot."""
    cache_claim_name: Text | None = None
    """A PersistentVolumeClaim that keeps what is downloaded from hubs (models and data sets), mounted as HF_HOME into
    every container. Absent: each pod downloads anew, into its `/tmp`."""
