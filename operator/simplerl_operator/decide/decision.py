"""What is to be done and said."""

from dataclasses import dataclass
from enum import StrEnum

from simplerl_api.status import Adaptation, Phase
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.ray_cluster import Group

ITS_EVENTS_COME = 5.0
"""Seconds until the next look at a RayCluster that was just made, where nothing is heard of its pods."""


class Action(StrEnum):
    """What to do after the status has been written."""

    NOTHING = "Nothing"
    CREATE_CLUSTER = "CreateCluster"
    SUBMIT = "Submit"
    DRAIN = "Drain"
    """Ask the driver to save its last finished step and to end."""
    SET_ENGINES = "SetEngines"
    """Tell the driver how many engines spec.rollout.engines wants."""
    SCALE_ENGINES = "ScaleEngines"
    """Ask KubeRay for another number of pods of engines."""
    RELEASE = "Release"
    """Delete the RayCluster."""
    DELETE_JOB = "DeleteJob"
    """Delete the job itself."""


class Begin(StrEnum):
    """How an attempt begins; it does with a write to the status, before anything is made."""

    FIRST = "First"
    """From this write on the spec is fixed."""
    NEW_CLUSTER = "NewCluster"
    SAME_CLUSTER = "SameCluster"
    """In the pods of the attempt before."""
    ADMITTED = "Admitted"
    """In the RayCluster of the attempt before, with new pods, since Kueue lets it run again."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """An attempt ends with this write."""

    charged: bool
    """Whether it counts against spec.recovery.backoffLimit."""
    counted: bool = True
    """Whether it counts at all; a suspension does not, nor one after which the next attempt is another one."""
    retry: float | None = None
    """When the next attempt may begin, in seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class EnginePods:
    """Another number of pods of engines."""

    group: Group
    """Their group, as it was seen."""
    replicas: int
    leaving: tuple[str, ...]
    """Pods to delete, which do not count any more."""


Told = tuple[bool, Reason, str]
"""A condition's status, reason and message."""


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
    begin: Begin | None = None
    """An attempt begins."""
    ended: Ended | None = None
    """The attempt ends."""
    adaptation: Adaptation | None = None
    """What the next attempt does differently."""
    submitted: bool = False
    """The submission has been seen at Ray's Jobs API."""
    engine_pods: EnginePods | None = None
    """What KubeRay is asked for, where the action is that."""
    engines: Told | None = None
    """The condition EnginesScaled, where engines come and go with their pods."""
    log: tuple[str, ...] = ()
    """The driver's last lines, where the attempt failed."""
    wake: float | None = None
    """Seconds until the next look, where no event will call for it."""

    @property
    def over(self) -> bool:
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)
