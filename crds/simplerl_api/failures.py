"""Named ways in which the trainer ends, each with the exit code of its driver."""

from enum import StrEnum


class FailureReason(StrEnum):
    """Why a driver stopped. The names appear in `status.failure.reason` and never change their meaning."""

    INVALID_INPUT = "InvalidInput"
    """A file, model or setting cannot be used; the message names it. Trying again does not help."""
    PLACEMENT_TIMEOUT = "PlacementTimeout"
    """The Ray cluster did not offer the resources of the plan in time."""
    LOST_RANK = "LostRank"
    """A training rank's process or pod ended."""
    LOST_ENGINES = "LostEngines"
    """No rollout engine is left."""
    ROLLOUT_OUT_OF_MEMORY = "RolloutOutOfMemory"
    """An engine ran out of memory."""
    TRAINING_OUT_OF_MEMORY = "TrainingOutOfMemory"
    """A rank ran out of memory."""
    NON_FINITE = "NonFinite"
    """Three optimizer steps in a row had NaN or infinite gradients."""
    WEIGHT_SYNC_FAILED = "WeightSyncFailed"
    """The engines did not take over the ranks' weights."""
    CHECKPOINT_FAILED = "CheckpointFailed"
    """A checkpoint could not be written or read."""
    TIMED_OUT = "TimedOut"
    """A part of the run did not answer in time; the message names it."""
    INTERNAL = "InternalError"
    """A fault of the trainer; the log's last lines tell more."""
    SUPERSEDED = "Superseded"
    """A newer attempt writes into the run's folder; this one has stopped so as not to disturb it."""


EXIT_CODES: dict[FailureReason, int] = {reason: 10 + n for n, reason in enumerate(FailureReason)}
"""Exit code of the driver for each reason."""


class TrainerFailure(Exception):
    """Ends the run with a named reason and a sentence."""

    def __init__(self, reason: FailureReason, message: str) -> None:
        super().__init__(reason, message)  # both as args, so that it crosses processes whole
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message
