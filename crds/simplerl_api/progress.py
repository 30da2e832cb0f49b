"""The document that a running driver serves as `GET /progress?since=N&wait=SECONDS`.

`sequence` grows by one with each change; the driver answers when it is greater than `since`, or after `wait` seconds.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from simplerl_api.failures import FailureReason
from simplerl_api.struct import Struct

SCHEMA_VERSION = 1
PORT = 8400
"""The head pod's port of name `progress`: /progress, /control, the page and /metrics."""
PORT_NAME = "progress"
LOG_LINES = 40
"""Log lines that come with the document."""


class Received(Struct):
    """Documents that cross versions: members that this version does not know are ignored."""

    model_config = ConfigDict(extra="ignore")


class RunState(StrEnum):
    """What the driver is doing."""

    STARTING = "Starting"
    TRAINING = "Training"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DRAINED = "Drained"
    """It was asked to drain and has saved its last finished step: another attempt goes on from there."""


class Accuracy(Received):
    """An evaluation's result."""

    step: int
    """Step after which it was measured; 0 is before training."""
    accuracy: float
    """Share of right answers, 0 to 1, over all samples."""


class EvaluationProgress(Received):
    """Results on one data set."""

    dataset: str
    """Name of the data set."""
    first: Accuracy
    """The first result."""
    best: Accuracy
    """The best result."""
    last: Accuracy
    """The newest result."""


class CheckpointProgress(Received):
    """The newest complete checkpoint."""

    step: int
    """Step after which it was saved."""
    path: str
    """Its folder."""


class ModelProgress(Received):
    """The exported model."""

    path: str
    """Its Hugging Face folder."""


class FailureProgress(Received):
    """Why the driver ends."""

    reason: FailureReason
    """The named reason."""
    message: str
    """One sentence."""


class Versions(Received):
    """Versions of what trains."""

    trainer: str
    vllm: str
    deepspeed: str
    ray: str
    torch: str


class EngineProgress(Received):
    """The rollout engines."""

    current: int
    """Those that live."""
    desired: int
    """Those that are wanted: the plan's, what the driver finds where rollout.elastic lets it, or what `PUT /control`
    asked for last."""
    idle: Annotated[list[str], Field(default_factory=list)]
    """Addresses of nodes that hold no engine any more, where engines come and go: their pods may."""


class ControlRequest(Struct):
    """The body of `PUT /control`: what is to change while the job runs. At least one member is given."""

    engines: int | None = Field(default=None, ge=1, le=4096)
    """Rollout engines, from 1 to the plan's, or within rollout.elastic; acts at the next weight sync. Only where
    placement is disaggregated."""
    drain: bool = False
    """True: abandon the running rollout, save the last finished step and end; `state` is Drained once it is durable."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.engines is None and not self.drain:
            raise ValueError('it asks for nothing: give engines or drain, for example {"engines": 2}')
        return self


class Progress(Received):
    """Everything the operator needs to know of a run."""

    schema_version: int = SCHEMA_VERSION
    submission_id: str
    """The attempt that speaks."""
    sequence: int
    """Grows with each change of this document."""
    state: RunState
    """What the driver is doing."""
    activity: str = ""
    """The part of the step at work: rollout, annotate, update, sync, evaluate, checkpoint."""
    step: int = 0
    """Finished steps."""
    total_steps: int = 0
    """Steps of the job."""
    eta_seconds: float | None = None
    """Estimated seconds to the end."""
    samples_per_second: float | None = None
    """Samples trained per second in the newest step, whole step counted."""
    tokens_per_second: float | None = None
    """Prompt and response tokens per second in the newest step, whole step counted."""
    metrics: dict[str, float] = Field(default_factory=dict)
    """Named metrics of the newest step; finite ones only."""
    non_finite: Annotated[list[str], Field(default_factory=list)]
    """Names of the newest step's metrics that are not finite."""
    evaluations: Annotated[list[EvaluationProgress], Field(default_factory=list)]
    """Results by data set."""
    engines: EngineProgress | None = None
    """The rollout engines, once they have started."""
    checkpoint: CheckpointProgress | None = None
    """The newest complete checkpoint."""
    model: ModelProgress | None = None
    """The exported model."""
    failure: FailureProgress | None = None
    """Why the driver ends, where state is Failed."""
    log: Annotated[list[str], Field(default_factory=list)]
    """The newest log lines."""
    versions: Versions | None = None
    """Versions of what trains."""
    last_progress: float
    """Seconds since 1970 when anything last moved: a sample, a micro-batch, an evaluation item, checkpoint bytes."""

    @property
    def finished(self) -> bool:
        """Whether this is the last document of the run."""
        return self.state in (RunState.SUCCEEDED, RunState.FAILED, RunState.DRAINED)
