"""The whole spec and the object that carries it."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.checkpoint import Checkpoint
from simplerl_api.spec.cluster import Cluster
from simplerl_api.spec.data import Data
from simplerl_api.spec.evaluation import Evaluation
from simplerl_api.spec.model import Model
from simplerl_api.spec.placement import Placement
from simplerl_api.spec.recovery import MAX_SECONDS, Recovery
from simplerl_api.spec.rewards import Reward
from simplerl_api.spec.rollout import Rollout
from simplerl_api.spec.tracking import Tracking
from simplerl_api.spec.training import Training
from simplerl_api.struct import Struct


class Spec(Struct):
    """What the user asks for."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "!has(self.rollout) || !has(self.training) || (self.rollout.promptsPerStep * self.rollout.samplesPerPrompt)"
            " % self.training.trainBatchSize == 0",
            "training.trainBatchSize must divide rollout.promptsPerStep x rollout.samplesPerPrompt",
        ),
        (
            "self.cluster.gpus <= self.cluster.gpusPerNode || self.cluster.gpus % self.cluster.gpusPerNode == 0",
            "cluster.gpus must be a multiple of cluster.gpusPerNode, or smaller",
        ),
        (
            "!has(self.placement) || !has(self.placement.disaggregated)"
            " || self.placement.disaggregated.trainingGpus < self.cluster.gpus",
            "placement.disaggregated.trainingGpus must be less than cluster.gpus: the rest roll out",
        ),
        (
            "!has(self.rollout) || !has(self.rollout.overlap) || self.rollout.overlap != 'OneStep'"
            " || (has(self.placement) && has(self.placement.disaggregated))",
            "rollout.overlap OneStep needs placement.disaggregated: colocated engines sleep while their GPUs train",
        ),
        (
            "!has(self.rollout) || !has(self.rollout.elastic)"
            " || (has(self.placement) && has(self.placement.disaggregated))",
            "rollout.elastic needs placement.disaggregated: the pods of colocated engines hold ranks, and cannot go",
        ),
        (
            "!has(self.algorithm) || !has(self.algorithm.dynamicSampling) || !has(self.rollout)"
            " || self.rollout.samplesPerPrompt > 1",
            "algorithm.dynamicSampling needs rollout.samplesPerPrompt of at least 2: one sample has no variance",
        ),
        (
            "!has(self.algorithm) || !has(self.rollout) || self.rollout.samplesPerPrompt > 1"
            " || !(has(self.algorithm.grpo) || has(self.algorithm.rloo) || (has(self.algorithm.reinforcePlusPlus)"
            " && has(self.algorithm.reinforcePlusPlus.groupBaseline)"
            " && self.algorithm.reinforcePlusPlus.groupBaseline))",
            "rollout.samplesPerPrompt must be at least 2 where the algorithm compares a prompt's samples",
        ),
        (
            "!has(self.algorithm) || !has(self.algorithm.overlong) || self.algorithm.overlong.bufferTokens <= "
            "(has(self.rollout) && has(self.rollout.sampling) ? self.rollout.sampling.maxNewTokens : 3000)",
            "algorithm.overlong.bufferTokens must be at most rollout.sampling.maxNewTokens",
        ),
        (
            "self.rewards.all(r, self.rewards.exists_one(other, other.name == r.name))",
            "rewards must have names of their own",
        ),
        (
            "!self.rewards.exists(r, has(r.task)) || (has(self.data.train.reasoningGym)"
            " && (!has(self.evaluation) || self.evaluation.datasets.all(d, has(d.reasoningGym))))",
            "a task reward judges only reasoning-gym's own questions: data.train and evaluation.datasets must be"
            " reasoningGym",
        ),
        (
            "!has(self.algorithm) || !has(self.algorithm.dynamicSampling) || !self.rewards.exists(r, has(r.model))",
            "a reward model scores samples after they are drawn, but algorithm.dynamicSampling needs all scores"
            " while it draws: leave one of the two out",
        ),
        (
            "!has(self.algorithm) || !has(self.algorithm.maskTruncated) || !self.algorithm.maskTruncated"
            " || !self.rewards.exists(r, has(r.model))",
            "a reward model scores the samples that are trained on, but algorithm.maskTruncated leaves some out: take"
            " one of the two",
        ),
        (
            "!has(self.evaluation) || !self.rewards.all(r, has(r.model))",
            "evaluation needs a reward that says whether an answer is right: reward models alone do not",
        ),
        (
            "!has(self.training) || !has(self.training.deterministic) || !self.training.deterministic"
            " || !has(self.rollout) || !has(self.rollout.overlap) || self.rollout.overlap != 'OneStep'",
            "training.deterministic needs rollout.overlap None: a resumed run has no batch that was drawn ahead",
        ),
        (
            "!has(self.checkpoint) || !has(self.checkpoint.best)"
            " || (has(self.evaluation) && self.evaluation.datasets.exists(d, d.name == self.checkpoint.best))",
            "checkpoint.best must be the name of one of evaluation.datasets",
        ),
    )

    model: Model
    """The model to train."""
    data: Data
    """The training questions."""
    rewards: Annotated[list[Reward], Field(min_length=1, max_length=8)]
    """What is rewarded: the weighted sum of these."""
    algorithm: Algorithm = Field(default_factory=Algorithm)
    """How the policy is improved."""
    rollout: Rollout = Field(default_factory=Rollout)
    """How samples are drawn."""
    training: Training
    """How the weights are updated."""
    placement: Placement | None = None
    """Which GPUs train and which roll out. Absent: colocated."""
    cluster: Cluster
    """The pods of the job."""
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    """Where and how often the run is saved."""
    evaluation: Evaluation | None = None
    """Evaluations on held-out questions."""
    tracking: Tracking = Field(default_factory=Tracking)
    """Where the figures go besides the run's own folder."""
    recovery: Recovery = Field(default_factory=Recovery)
    """What happens when an attempt ends early, and bounds on waiting."""
    suspend: bool = False
    """True: the run is saved and its pods are removed, or none are made; false again: it goes on."""
    active_deadline_seconds: int | None = Field(default=None, ge=10, le=MAX_SECONDS)
    """Seconds after which the job fails; queued and suspended time is not counted. Absent: none."""
    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=MAX_SECONDS)
    """Seconds after which a job that is over is deleted. Absent: it stays. Not for GitOps: the repository would make it
    again."""


Label = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)]


class Metadata(BaseModel):
    """An object's metadata as a user writes it; what Kubernetes sets itself may stand there too, in a copy of an object
    of the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] = "default"
    labels: dict[str, Label] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    generateName: Any = None
    ownerReferences: Any = None
    uid: Any = None
    resourceVersion: Any = None
    generation: Any = None
    creationTimestamp: Any = None
    deletionTimestamp: Any = None
    deletionGracePeriodSeconds: Any = None
    managedFields: Any = None
    selfLink: Any = None


class SimpleRLJob(BaseModel):
    """A SimpleRLJob as a user writes it in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    apiVersion: Literal["simplerl.io/v1alpha1"]
    kind: Literal["SimpleRLJob"]
    metadata: Metadata
    spec: Spec
    status: dict[str, Any] | None = None
