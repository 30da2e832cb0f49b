"""The status of a SimpleRLJob: everything a person wants to know, written by the operator alone."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from simplerl_api.plan import Plan
from simplerl_api.struct import Struct

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, max_length=32)]
"""An RFC 3339 time in UTC."""


class Phase(StrEnum):
    """Where the job stands, in one word."""

    PENDING = "Pending"
    QUEUED = "Queued"
    PROVISIONING = "Provisioning"
    STARTING = "Starting"
    TRAINING = "Training"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RECOVERING = "Recovering"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Condition(Struct):
    """A metav1.Condition."""

    type: Annotated[str, Field(max_length=64)]
    """Accepted, ClusterReady, Suspended, Succeeded, Ready, Reconciling, Stalled or EnginesScaled."""
    status: Annotated[str, Field(pattern="^(True|False|Unknown)$")]
    """True, False or Unknown."""
    reason: Annotated[str, Field(max_length=64)]
    """One CamelCase word."""
    message: Annotated[str, Field(max_length=2048)] = ""
    """A sentence for people."""
    last_transition_time: Time
    """When status last changed."""
    observed_generation: int | None = None
    """The generation that this speaks of."""


class Termination(Struct):
    """How a container ended."""

    pod: Annotated[str, Field(max_length=253)]
    """Name of the pod."""
    container: Annotated[str, Field(max_length=253)]
    """Name of the container."""
    exit_code: int
    """Its exit code."""
    reason: Annotated[str, Field(max_length=128)]
    """Kubernetes' word for it, for example OOMKilled."""
    log: Annotated[str, Field(max_length=1024)] | None = None
    """Its last lines where it ended by itself with an exit code, at most 1024 characters, the job's token left out."""


class AttemptStatus(Struct):
    """One attempt."""

    number: int
    """Number of the attempt, from 1."""
    reason: Annotated[str, Field(max_length=64)]
    """How it ended."""
    message: Annotated[str, Field(max_length=2048)] = ""
    """A sentence for people."""
    last_step: int = 0
    """Its last finished step."""
    terminations: Annotated[list[Termination], Field(max_length=20)] = Field(default_factory=list)
    """Containers that ended other than well."""


class EnginePodsStatus(Struct):
    """Pods of engines that come and go, as gpuSeconds counts them; written along with other news."""

    number: int
    """Those that have a node."""
    since: Time
    """Since when there are so many."""
    seconds: int = 0
    """Seconds of all of them in this attempt up to then."""


class Adaptation(Struct):
    """A change of the spec for the attempts that follow one which ran out of memory."""

    attempt: int
    """The first attempt that has it."""
    reason: Annotated[str, Field(max_length=64)]
    """How the attempt before it ended."""
    path: Annotated[str, Field(max_length=253)]
    """The field of the spec, for example rollout.maxNumBatchedTokens."""
    before: JsonValue = Field(default=None, alias="from")
    """Its value before; absent where the spec had none."""
    to: JsonValue
    """Its value from then on."""


class ClusterStatus(Struct):
    """The RayCluster of the attempt."""

    name: Annotated[str, Field(max_length=63)]
    """Its name."""
    uid: Annotated[str, Field(max_length=64)]
    """Its uid."""
    head_service: Annotated[str, Field(max_length=253)] | None = None
    """The head's service."""
    submission_id: Annotated[str, Field(max_length=63)] | None = None
    """Id of the Ray job, once submitted."""
    ready_workers: int = 0
    """Worker pods that are ready; while the job runs, where pods of engines come and go, those that run."""
    desired_workers: int = 0
    """Worker pods wanted: those with ranks and, where pods of engines come and go, those for the engines wanted now."""
    admission: Time | None = None
    """When its queue admitted it, by the queue's clock: another time means that its pods were taken in between."""
    pod_set: Annotated[str, Field(max_length=16)] | None = None
    """Digest of the uids of its pods without those that come and go, once all were ready: another one means that a pod
    was lost or replaced."""
    engine_pods: EnginePodsStatus | None = None
    """Pods of engines, where they come and go."""


class TrainingStatus(Struct):
    """Progress and the newest figures."""

    step: int
    """Finished steps."""
    total_steps: int
    """Steps of the job."""
    progress_percent: int
    """Finished share of the steps, 0 to 100."""
    eta_seconds: int | None = None
    """Estimated seconds to the end."""
    samples_per_second: float | None = None
    """Samples trained per second in the newest step."""
    tokens_per_second: float | None = None
    """Prompt and response tokens per second in the newest step."""
    metrics: Annotated[dict[str, float], Field(max_length=64)] = Field(default_factory=dict)
    """Figures of the newest step."""
    last_update_time: Time
    """When these figures were read."""


class AccuracyStatus(Struct):
    """An evaluation's result."""

    step: int
    """Step after which it was measured; 0 is before training."""
    accuracy: float
    """Share of right answers, 0 to 1."""


class EvaluationStatus(Struct):
    """Results on one data set."""

    dataset: Annotated[str, Field(max_length=253)]
    """Name of the data set."""
    first: AccuracyStatus
    """The first result."""
    best: AccuracyStatus
    """The best result."""
    last: AccuracyStatus
    """The newest result."""


class CheckpointStatus(Struct):
    """The newest complete checkpoint."""

    step: int
    """Step after which it was saved."""
    path: Annotated[str, Field(max_length=1024)]
    """Its folder on the claim."""


class ModelStatus(Struct):
    """The exported model."""

    path: Annotated[str, Field(max_length=1024)]
    """Its Hugging Face folder on the claim."""


class FailureStatus(Struct):
    """Why the job failed."""

    reason: Annotated[str, Field(max_length=64)]
    """One CamelCase word."""
    message: Annotated[str, Field(max_length=2048)] = ""
    """A sentence for people."""
    log: Annotated[str, Field(max_length=4096)] = ""
    """The driver's last log lines, secrets left out."""


class Summary(Struct):
    """Printed strings for the columns."""

    step: Annotated[str, Field(max_length=32)] = ""
    """For example 37/120."""
    progress: Annotated[str, Field(max_length=8)] = ""
    """For example 30%."""
    reward: Annotated[str, Field(max_length=16)] = ""
    """Mean reward of the newest step."""
    eval: Annotated[str, Field(max_length=64)] = ""
    """First data set and its newest accuracy."""
    duration: Annotated[str, Field(max_length=16)] = ""
    """Time from start to completion, once complete."""
    model: Annotated[str, Field(max_length=64)] = ""
    """The model."""


class VersionsStatus(Struct):
    """Versions of what trains."""

    trainer: Annotated[str, Field(max_length=64)] = ""
    vllm: Annotated[str, Field(max_length=64)] = ""
    deepspeed: Annotated[str, Field(max_length=64)] = ""
    ray: Annotated[str, Field(max_length=64)] = ""
    torch: Annotated[str, Field(max_length=64)] = ""


class Status(Struct):
    """What the operator reports."""

    map_lists: ClassVar[dict[str, str]] = {"conditions": "type", "evaluations": "dataset"}
    """Lists that are maps, with the key of their items (x-kubernetes-list-type: map)."""

    observed_generation: int | None = None
    """The generation of the spec that this status speaks of."""
    phase: Phase | None = None
    """Where the job stands, in one word."""
    start_time: Time | None = None
    """When the first RayCluster was created; the spec is fixed from then on."""
    completion_time: Time | None = None
    """When the job succeeded or failed."""
    conditions: Annotated[list[Condition], Field(max_length=16)] = Field(default_factory=list)
    """Accepted, ClusterReady, Suspended, Succeeded, Ready, Reconciling, Stalled."""
    plan: Plan | None = None
    """What was made of the spec, with every chosen default; fixed at the first start."""
    attempt: int | None = None
    """Number of the attempt, from 1."""
    failures: int = 0
    """Attempts that failed and are charged to spec.recovery.backoffLimit: those since the run last got further."""
    failure_step: int | None = None
    """Step of the newest checkpoint when the last failure was charged; a later one sets failures back to 0."""
    interruptions: int = 0
    """Attempts that were ended from outside (preemption, eviction, drain) and are not charged."""
    attempt_start_time: Time | None = None
    """When this attempt began."""
    admitted_time: Time | None = None
    """When the queue let this attempt go on; absent where no queue held it."""
    scheduled_time: Time | None = None
    """Since when all pods of the attempt have a node; spec.recovery.startupDeadlineSeconds counts from it."""
    suspend_time: Time | None = None
    """When the suspension that is under way, or done, began."""
    next_retry_time: Time | None = None
    """When the next attempt may begin, while the phase is Recovering."""
    active_seconds: int = 0
    """Seconds since the start without those in which the job was queued or suspended, up to activeSince."""
    active_since: Time | None = None
    """When the job last became active; absent while it is queued, suspended or over."""
    gpu_seconds: int = 0
    """GPU-seconds of the attempts that ended: their GPUs times the seconds for which all their pods had nodes. Pods of
    engines that come and go count for as long as they were seen to have nodes, to the nearest write of this status. 0
    where spec.cluster.cpuOnly."""
    last_progress_time: Time | None = None
    """When anything last moved."""
    attempts: Annotated[list[AttemptStatus], Field(max_length=5)] = Field(default_factory=list)
    """The last five attempts that ended."""
    adaptations: Annotated[list[Adaptation], Field(max_length=20)] = Field(default_factory=list)
    """What was changed when attempts ran out of memory (spec.recovery.onOutOfMemory: Adapt), in order: the effective
    spec is the spec and these."""
    cluster: ClusterStatus | None = None
    """The RayCluster of the attempt."""
    training: TrainingStatus | None = None
    """Progress and the newest figures."""
    evaluations: Annotated[list[EvaluationStatus], Field(max_length=16)] = Field(default_factory=list)
    """Results by data set."""
    checkpoint: CheckpointStatus | None = None
    """The newest complete checkpoint."""
    model: ModelStatus | None = None
    """The exported model."""
    failure: FailureStatus | None = None
    """Why the job failed."""
    summary: Summary | None = None
    """Printed strings for the columns."""
    versions: VersionsStatus | None = None
    """Versions of what trains."""
