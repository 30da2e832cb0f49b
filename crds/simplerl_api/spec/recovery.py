"""What happens when an attempt ends early, and how long the job waits for what does not come."""

from enum import StrEnum

from pydantic import Field

from simplerl_api.struct import Struct

MAX_SECONDS = 31_536_000
"""A year."""


class OnOutOfMemory(StrEnum):
    """What the next attempt does differently when one ran out of memory."""

    ADAPT = "Adapt"
    """One thing: it holds less in memory at once."""
    RETRY = "Retry"
    """Nothing."""


class Recovery(Struct):
    """Attempts and bounds on waiting; all of it may change while the job runs."""

    backoff_limit: int = Field(default=3, ge=0, le=100)
    """Failed attempts in a row after which another one is tried. A checkpoint of a later step than at the last failure
    begins the count anew; preemption, eviction and drains are not counted."""
    on_out_of_memory: OnOutOfMemory = OnOutOfMemory.ADAPT
    """Adapt: after RolloutOutOfMemory the next attempt has half of rollout.maxNumBatchedTokens, then of maxNumSeqs,
    then twice the tensorParallelSize; after TrainingOutOfMemory half of training.maxTokensPerMicroBatch (or twice the
    gradientAccumulationSteps), then gradientCheckpointing, zeroStage 3, offload.optimizer. Each change stands in
    status.adaptations and is not counted as a failure; what is trained stays the same. Retry: it is tried as it is."""
    scheduling_deadline_seconds: int | None = Field(default=None, ge=10, le=MAX_SECONDS)
    """Seconds in which all pods must have a node, from the attempt's start or its queue's admission; then the job
    fails. Absent: it waits."""
    startup_deadline_seconds: int = Field(default=1800, ge=10, le=604800)
    """Seconds to the first step, from when all pods have a node; then the attempt fails."""
    stall_timeout_seconds: int = Field(default=1800, ge=10, le=604800)
    """Seconds without progress of any kind while training; then the attempt fails."""
    drain_seconds: int = Field(default=120, ge=1, le=3600)
    """Seconds in which the driver may save its last finished step before its pods are ended."""
