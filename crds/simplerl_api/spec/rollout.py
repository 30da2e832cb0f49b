"""How samples are drawn from the policy."""

from enum import StrEnum

from pydantic import Field

from simplerl_api.struct import Struct


class Sampling(Struct):
    """How tokens are drawn."""

    temperature: float = Field(default=1.0, ge=0.01, le=2)
    """Temperature of the policy, 0.01 to 2 as vLLM has it; the training log-probabilities have the same."""
    max_new_tokens: int = Field(default=3000, ge=1, le=1_000_000)
    """Longest response in tokens; a longer one is cut and counted as truncated."""


class Overlap(StrEnum):
    """What is drawn while a step trains."""

    NONE = "None"
    """Nothing: each step draws, then trains."""
    ONE_STEP = "OneStep"
    """The next step's samples, from the weights that the step began with."""


class Rollout(Struct):
    """vLLM engines and what they draw in a step."""

    engines_per_gpu: int | None = Field(default=None, ge=1, le=8)
    """vLLM engines on each GPU that rolls out. Absent: 1."""
    engines: int | None = Field(default=None, ge=1, le=4096)
    """Engines in all, in place of enginesPerGpu; spread evenly over the GPUs that roll out."""
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

    @property
    def samples_per_step(self) -> int:
        """Samples of one step: promptsPerStep x samplesPerPrompt."""
        return self.prompts_per_step * self.samples_per_prompt
