"""The engine protocol: what a rollout engine takes and gives, whatever runs behind it.

An engine is a process of its own. Its calls are few and carry many requests, since the cost of a call in Python is
what makes rollouts slow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from simplerl_trainer.samples import Finish
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.road import Receiver


@dataclass(frozen=True, slots=True)
class Request:
    """One response to draw."""

    id: int
    prompt_ids: tuple[int, ...]
    seed: int
    """Fixes the response's random numbers, whichever engine draws it."""
    temperature: float
    """0 takes the likeliest token."""
    max_new_tokens: int
    logprobs: bool
    """Whether the log-probabilities of the drawn tokens are wanted, after temperature (vLLM's processed_logprobs)."""
    top_p: float = 1.0
    """Share of the probability from which tokens are drawn; below 1 in evaluations alone."""


@dataclass(frozen=True, slots=True)
class Finished:
    """One response, drawn."""

    id: int
    token_ids: tuple[int, ...]
    """The end-of-sequence token included where it was drawn."""
    finish: Finish
    logprobs: tuple[float, ...] | None
    weights_version: int


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """What an engine needs to start."""

    model_folder: str
    """A Hugging Face folder on the engine's node."""
    bf16: bool
    cpu_only: bool
    max_model_len: int
    """Longest prompt and response in tokens."""
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_share: float
    """Share of each of its GPUs' memory for this engine."""
    stop_token_ids: tuple[int, ...]
    """Every id that ends a response."""
    seed: int
    deterministic: bool = False
    """Whether what it computes may depend on its requests and their order alone: then it keeps no prefixes."""
    vocabulary: int | None = None
    """Ids below it may be drawn; None: as many as the model's head has rows. Heads are often padded beyond the
    tokenizer's ids."""
    tensor_parallel_size: int = 1
    """GPUs that hold the engine together, each with a worker process of its own; with 1 the engine's process does the
    work itself."""
    verify_weights: bool = False
    """Whether each load compares checksums of all parameters."""


class Engine(Protocol):
    """A rollout engine."""

    def start(self, setup: EngineSetup) -> dict[str, str]:
        """Loads the model; returns versions."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Queues requests; returns at once."""

    def finished(self, wait: float) -> list[Finished]:
        """Responses that finished since the last call; waits up to `wait` seconds for the first."""

    def abort(self, ids: Sequence[int]) -> None:
        """Forgets requests that have not finished."""

    def sleep(self) -> None:
        """Gives its GPU memory back (level 2: weights are dropped); nothing on CPU."""

    def wake(self, tags: Sequence[str]) -> None:
        """Takes memory again for `weights`, then for `kv_cache`; nothing on CPU."""

    def load(self, receivers: Sequence[Receiver], buckets: Sequence[Bucket], version: int) -> int:
        """Takes over the ranks' weights, each worker along its own road, and drops the prefix cache; returns the number
        of parameters loaded."""

    def version(self) -> int:
        """Version of the weights that it draws from; 0 is the model folder's."""
