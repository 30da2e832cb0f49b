"""How samples are drawn from the policy."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from simplerl_api.struct import Struct

StopText = Annotated[str, Field(min_length=1, max_length=64)]
"""A text that is one token of the model's tokenizer, at most 64 characters."""

_WHOLE = "the training log-probabilities are of the whole distribution, so that a cut one would bias their ratio"
TOP_P_RULE = f"rollout.sampling.topP must be 1 ({_WHOLE}): leave it out, or cut evaluation.topP"
TOP_K_RULE = f"rollout.sampling.topK must be -1 ({_WHOLE}): leave it out"


class Sampling(Struct):
    """How tokens are drawn."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (("self.topP == 1.0", TOP_P_RULE), ("self.topK == -1", TOP_K_RULE))

    temperature: float = Field(default=1.0, ge=0.01, le=2)
    """Temperature of the policy, 0.01 to 2 as vLLM has it; the training log-probabilities have the same."""
    top_p: float = Field(default=1.0, ge=0, le=1)
    """1, and nothing else: drawing from a part of the distribution would bias the ratio of probabilities."""
    top_k: int = Field(default=-1, ge=-1, le=10_000_000)
    """-1, and nothing else: drawing from a part of the distribution would bias the ratio of probabilities."""
    max_new_tokens: int = Field(default=3000, ge=1, le=1_000_000)
    """Longest response in tokens; a longer one is cut and counted as truncated."""
    stop: Annotated[list[StopText], Field(max_length=16)] = Field(default_factory=list)
    """Texts that end a response beside the model's own end-of-sequence tokens, in rollouts and evaluations; each must
    be exactly one token of the tokenizer. A base model whose template is a chat needs <|im_end|>, for example."""

    @field_validator("top_p")
    @classmethod
    def _whole_by_p(cls, value: float) -> float:
        if value != 1:
            raise ValueError(TOP_P_RULE)
        return value

    @field_validator("top_k")
    @classmethod
    def _whole_by_k(cls, value: int) -> int:
        if value != -1:
            raise ValueError(TOP_K_RULE)
        return value


class Overlap(StrEnum):
    """What is drawn while a step trains."""

    NONE = "None"
    """Nothing: each step draws, then trains."""
    ONE_STEP = "OneStep"
    """The next step's samples, from the weights that the step began with."""


class Elastic(Struct):
    """Engines that come and go with their pods while the job runs."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        ("self.minEngines <= self.maxEngines", "rollout.elastic.minEngines must be at most maxEngines"),
    )

    min_engines: int = Field(ge=1, le=4096)
    """Engines with which the job starts, and which it keeps."""
    max_engines: int = Field(ge=1, le=4096)
    """Engines on all GPUs that roll out: as many as they are, or a whole number of times as many."""


class Rollout(Struct):
    """vLLM engines and what they draw in a step."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "!has(self.elastic) || !has(self.engines)"
            " || (self.engines >= self.elastic.minEngines && self.engines <= self.elastic.maxEngines)",
            "rollout.engines must be within rollout.elastic",
        ),
    )

    tensor_parallel_size: Literal[1, 2, 4, 8] = 1
    """Neighbouring GPUs of one node that hold an engine together: for models too large for one GPU. It must divide the
    GPUs that roll out, and cluster.gpusPerNode; the model's attention heads must divide by it."""
    engines_per_gpu: int | None = Field(default=None, ge=1, le=8)
    """vLLM engines on each GPU that rolls out, or on each group of tensorParallelSize GPUs; several share a GPU under
    CUDA MPS where it can be started. Absent: 4 on GPUs where `simplerl` runs the job itself and sees that the model has
    at most a billion parameters, else 1: the operator plans before there are pods, and a spec names a model without its
    size. The driver's log says where more engines than the plan's would draw faster."""
    engines: int | None = Field(default=None, ge=1, le=4096)
    """Engines in all, in place of enginesPerGpu; spread evenly over the GPUs that roll out. With `elastic` how many are
    wanted now, in place of what the driver finds."""
    elastic: Elastic | None = None
    """Pods of engines come and go: the job starts as soon as minEngines have their pods, takes up to maxEngines as pods
    come, and with overlap OneStep gives back those that training does not keep busy. Needs placement.disaggregated
    whose trainingGpus fill whole nodes; cluster.gpus is the job's largest size. In a queue of Kueue all engines start,
    and stay."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of one GPU's memory for all its engines while they roll out."""
    max_num_batched_tokens: int = Field(default=8192, ge=1, le=10_000_000)
    """Tokens that an engine processes at once."""
    max_num_seqs: int = Field(default=256, ge=1, le=100_000)
    """Sequences that an engine decodes at once."""
    prompts_per_step: int = Field(default=1024, ge=1, le=10_000_000)
    """Questions drawn in a step."""
    samples_per_prompt: int = Field(default=8, ge=1, le=4096)
    """Responses to each question."""
    overlap: Overlap = Overlap.NONE
    """None: each step draws, then trains. OneStep: the next step's samples are drawn while a step trains, so that they
    are one version old when they train; decoupled PPO weighs them by min(2, proximal / behavior probability). Needs
    placement.disaggregated."""
    sampling: Sampling = Field(default_factory=Sampling)
    """How tokens are drawn."""
    verify_weights: bool = False
    """For debugging: each weight sync ends only when the checksum of every parameter that an engine computes with is
    that of what the ranks sent. Costs about as much as the sync itself."""

    @property
    def samples_per_step(self) -> int:
        """Samples of one step: promptsPerStep x samplesPerPrompt."""
        return self.prompts_per_step * self.samples_per_prompt
