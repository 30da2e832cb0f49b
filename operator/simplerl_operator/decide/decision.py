"""What is to be done and said."""

from dataclasses import dataclass
from enum import StrEnum

from simplerl_api.status import Phase


class Action(StrEnum):
    """What to do after the status has been written."""

    NOTHING = "Nothing"
    CREATE_CLUSTER = "CreateCluster"
    SUBMIT = "Submit"
    RELEASE = "Release"
    """Delete the RayCluster."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The outcome of one rule."""

    action: Action = Action.NOTHING
    phase: Phase | None = None
    """Where the job stands; None leaves the status as it is."""
    reason: str = ""
    message: str = ""
    refused: bool = False
    """The spec cannot be run as it is; it stays editable."""
    cluster_ready: bool | None = None
    """Whether all pods were ready and are all there; None: not asked yet."""
    queued: bool = False
    """Kueue holds the RayCluster back: what was submitted to it is gone, and is submitted anew once it is admitted."""
    admitted: bool = False
    """Kueue lets the RayCluster run, from this write on."""
    start: bool = False
    """Begin the first attempt: from this write on the spec is fixed."""
    submitted: bool = False
    """The submission has been seen at Ray's Jobs API."""
    log: tuple[str, ...] = ()
    """The driver's last lines, where the job failed."""
    wake: float | None = None
    """Seconds until the next look, where no event will call for it."""

    @property
    def over(self) -> bool:
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)
