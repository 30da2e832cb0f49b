"""How the weights are updated."""

from enum import IntEnum, StrEnum
from typing import Annotated

from pydantic import Field

from simplerl_api.struct import Struct


class Precision(StrEnum):
    """Type of weights and activations; optimizer states and gradient sums are float32 in either case."""

    BF16 = "BF16"
    FP32 = "FP32"


class ZeroStage(IntEnum):
    """What the ranks share out (https://arxiv.org/abs/1910.02054)."""

    REPLICATED = 0
    OPTIMIZER = 1
    GRADIENTS = 2
    PARAMETERS = 3


class ScheduleKind(StrEnum):
    """Course of the learning rate after its warm-up."""

    CONSTANT = "Constant"
    COSINE_WITH_MIN = "CosineWithMin"


class Schedule(Struct):
    """Course of the learning rate over the optimizer steps of the whole job."""

    kind: ScheduleKind = ScheduleKind.CONSTANT
    """Constant, or a cosine from the learning rate down to minFraction of it."""
    warmup_fraction: float = Field(default=0.0, ge=0, le=1)
    """Share of all optimizer steps in which the rate rises from 0."""
    min_fraction: float = Field(default=0.1, ge=0, le=1)
    """Last rate as a share of learningRate; CosineWithMin only."""


class Optimizer(Struct):
    """AdamW (https://arxiv.org/abs/1711.05101)."""

    learning_rate: float = Field(ge=0, le=1)
    """Learning rate, for example 5.0e-7; 0 leaves the weights as they are."""
    betas: Annotated[list[float], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: [0.9, 0.95])
    """Decay of the two moment estimates."""
    weight_decay: float = Field(default=0.0, ge=0, le=1)
    """Weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0, le=1e6)
    """Gradients are scaled down to this norm."""
    schedule: Schedule = Field(default_factory=Schedule)
    """Course of the learning rate."""


class ActorOptimizer(Optimizer):
    """AdamW of the policy."""

    learning_rate: float = Field(default=5e-7, ge=0, le=1)
    """Learning rate of the policy, for example 5.0e-7; 0 leaves the weights as they are."""


class CriticOptimizer(Optimizer):
    """AdamW of the critic."""

    learning_rate: float = Field(default=9e-6, ge=0, le=1)
    """Learning rate of the critic, for example 9.0e-6."""


class Training(Struct):
    """The DeepSpeed ranks and their optimizer steps."""

    steps: int = Field(ge=0, le=10_000_000)
    """Steps of the job, each one rollout and all its optimizer steps."""
    zero_stage: ZeroStage | None = None
    """0 replicated, 1 optimizer, 2 gradients, 3 parameters shared out among the ranks. Absent: 3, or 1 where there is
    one rank."""
    train_batch_size: int = Field(default=128, ge=1, le=10_000_000)
    """Samples of one optimizer step; divides promptsPerStep x samplesPerPrompt."""
    max_tokens_per_micro_batch: int = Field(default=32768, ge=1, le=10_000_000)
    """Tokens that a rank packs into one forward and backward pass; must hold the longest prompt and response."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, a third more time."""
    precision: Precision | None = None
    """Type of weights and activations. Absent: BF16 on GPUs, FP32 where cluster.cpuOnly."""
    actor: ActorOptimizer = Field(default_factory=ActorOptimizer)
    """Optimizer of the policy."""
    critic: CriticOptimizer = Field(default_factory=CriticOptimizer)
    """Optimizer of the critic."""
    seed: int = Field(default=42, ge=0, le=2**31 - 1)
    """Seed of the data's order, the sampling and the critic's head."""
    deterministic: bool = False
    """The same seed gives the same run, and a resumed run goes on as the one that was not interrupted: bitwise on CPUs
    of one kind, but for times. Requests go to fixed engines in a fixed order, without prefix caching, so that rollouts
    are slower. GPU runs are made alike as far as their kernels allow, which is not bitwise."""
