"""Repositories of a Hugging Face hub."""

from typing import Annotated

from pydantic import Field

from simplerl_api.spec.reference import SecretKeyRef
from simplerl_api.struct import Struct, Text

RepositoryName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=193)
]
"""`owner/name` on a hub."""


class HubModel(Struct):
    """A model of a Hugging Face hub (the one that the variable HF_ENDPOINT names, https://huggingface.co without it).

    Each node downloads its files once; the head takes the tokenizer and configuration alone.
    """

    name: RepositoryName
    """The repository, for example `Qwen/Qwen2.5-Math-7B`."""
    revision: Text | None = None
    """A branch, tag or commit. Absent: the main branch. It is resolved to a commit at the first start, and later
    attempts use the same commit."""
    token_secret_ref: SecretKeyRef | None = None
    """The hub's token, for private and gated repositories: the variable HF_TOKEN of the containers. All hub
    repositories of a job share one. Without Kubernetes HF_TOKEN itself is read."""


class HubQuestions(Struct):
    """A data set of a Hugging Face hub, read by the `datasets` library; code in repositories is never run."""

    name: RepositoryName
    """The repository, for example `openai/gsm8k`."""
    config: Text | None = None
    """The configuration, for example `main`. Absent: the only or default one."""
    split: Text = "train"
    """The split, or a part of it such as `train[:1000]`."""
    revision: Text | None = None
    """A branch, tag or commit. Absent: the main branch. It is resolved to a commit at the first start, and later
    attempts use the same commit."""
    token_secret_ref: SecretKeyRef | None = None
    """The hub's token, as that of `model.hub`."""
