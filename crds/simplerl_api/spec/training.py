"""How the weights are updated."""

from enum import IntEnum, StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

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


Decay = Annotated[float, Field(ge=0, lt=1)]
"""Share of a moment estimate that an optimizer step keeps, at least 0 and less than 1."""


class Optimizer(Struct):
    """AdamW (https://arxiv.org/abs/1711.05101)."""

    learning_rate: float = Field(ge=0, le=1)
    """Learning rate, for example 5.0e-7; 0 leaves the weights as they are."""
    betas: Annotated[list[Decay], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: [0.9, 0.95])
    """Decay of the two moment estimates, each at least 0 and less than 1."""
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
    warmup_steps: int = Field(default=0, ge=0, le=10_000_000)
    """First steps of the job in which only the critic learns; the policy's schedule begins after them."""


class Offload(Struct):
    """What of the training lives in the machine's memory instead of the GPU's: slower, and room for larger models."""

    optimizer: bool = False
    """The optimizer's states (float32 masters and AdamW's moments) and its steps, for zeroStage 1 to 3."""
    parameters: bool = False
    """The weights, which reach the GPU layer by layer; for zeroStage 3, with offload.optimizer."""


MICRO_BATCH_TOKENS = 32768
"""Tokens of a micro-batch where the spec names none."""
ONE_BOUND = "give maxTokensPerMicroBatch or gradientAccumulationSteps, not both: each says how large a micro-batch is"
PARAMETERS_ALONE = "offload.parameters needs offload.optimizer: set that too"
PARAMETERS_NEED_3 = "offload.parameters needs zeroStage 3, under which weights are shared out: set zeroStage 3"
OPTIMIZER_NEEDS_1 = "offload.optimizer needs zeroStage 1, 2 or 3: stage 0 keeps everything on the GPU"


class Training(Struct):
    """The DeepSpeed ranks and their optimizer steps."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        ("!(has(self.maxTokensPerMicroBatch) && has(self.gradientAccumulationSteps))", ONE_BOUND),
        ("!has(self.offload) || !self.offload.parameters || self.offload.optimizer", PARAMETERS_ALONE),
        (
            "!has(self.offload) || !self.offload.parameters || !has(self.zeroStage) || self.zeroStage == 3",
            PARAMETERS_NEED_3,
        ),
        (
            "!has(self.offload) || !self.offload.optimizer || !has(self.zeroStage) || self.zeroStage > 0",
            OPTIMIZER_NEEDS_1,
        ),
        (
            "!has(self.critic) || self.critic.warmupSteps == 0 || self.critic.warmupSteps < self.steps",
            "training.critic.warmupSteps must be less than training.steps: the policy would never learn",
        ),
    )

    steps: int = Field(ge=0, le=10_000_000)
    """Steps of the job, each one rollout and all its optimizer steps. 0: the job only evaluates."""
    zero_stage: ZeroStage | None = None
    """0 replicated, 1 optimizer, 2 gradients, 3 parameters shared out among the ranks. Absent: 1 where there is
    one rank, 3 on CPU, else the least of 1 to 3 that fits the GPUs without more checkpointing or sleep."""
    train_batch_size: int = Field(default=128, ge=1, le=10_000_000)
    """Samples of one optimizer step; divides promptsPerStep x samplesPerPrompt."""
    max_tokens_per_micro_batch: int | None = Field(default=None, ge=1, le=10_000_000)
    """Tokens that a rank packs into one micro-batch (a forward and backward pass); must hold the longest prompt and
    response. Absent: 32768, or the longest prompt and response where they are longer; or gradientAccumulationSteps."""
    gradient_accumulation_steps: int | None = Field(default=None, ge=1, le=100_000)
    """In place of maxTokensPerMicroBatch: micro-batches of each rank in an optimizer step. A rank's samples are dealt
    to them so that they hold about equally many tokens, however many those are. At most trainBatchSize / ranks."""
    gradient_checkpointing: bool | None = None
    """Recompute activations in the backward pass: less memory, a third more time. Absent: only where the GPU's memory
    needs it, by the estimate of `simplerl plan`; never where cluster.cpuOnly."""
    offload: Offload = Field(default_factory=Offload)
    """What of the training lives in the machine's memory instead of the GPU's."""
    precision: Precision | None = None
    """Type of weights and activations. Absent: BF16 on GPUs, FP32 where cluster.cpuOnly."""
    actor: ActorOptimizer = Field(default_factory=ActorOptimizer)
    """Optimizer of the policy."""
    critic: CriticOptimizer = Field(default_factory=CriticOptimizer)
    """Optimizer of the critic; ignored by algorithms that have none."""
    seed: int = Field(default=42, ge=0, le=2**31 - 1)
    """Seed of the data's order, the sampling and the critic's head."""
    deterministic: bool = False
    """The same seed gives the same run, and a resumed run goes on as the one that was not interrupted: bitwise on CPUs
    of one kind, but for times. Requests go to fixed engines in a fixed order, without prefix caching, so that rollouts
    are slower. GPU runs are made alike as far as their kernels allow, which is not bitwise."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.max_tokens_per_micro_batch is not None and self.gradient_accumulation_steps is not None:
            raise ValueError(ONE_BOUND)
        if self.offload.parameters and not self.offload.optimizer:
            raise ValueError(PARAMETERS_ALONE)
        if self.offload.parameters and self.zero_stage not in (None, ZeroStage.PARAMETERS):
            raise ValueError(PARAMETERS_NEED_3)
        if self.offload.optimizer and self.zero_stage is ZeroStage.REPLICATED:
            raise ValueError(OPTIMIZER_NEEDS_1)
        return self
