"""Everything that a decision may rest on."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from simplerl_api.progress import Progress
from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.pods import Pod
from simplerl_operator.observe.ray_cluster import Group, RayCluster
from simplerl_operator.observe.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Whether what the spec refers to is there; looked at before the start."""

    missing_claim: str | None = None
    """The first PersistentVolumeClaim that does not exist."""
    unshared_claim: tuple[str, str, str] | None = None
    """A claim that all pods must write and one node alone can mount: its field, its name and its access modes."""
    missing_config_map: str | None = None
    missing_secret: str | None = None
    bad_code: str | None = None
    """The sentence about a reward's code that cannot work."""
    rejection: str | None = None
    """What the API server says to the RayCluster, where it would refuse it."""


class Lock(StrEnum):
    """Whether the head asks for the job's token."""

    ENFORCED = "Enforced"
    OPEN = "Open"
    UNKNOWN = "Unknown"


class RayJobState(StrEnum):
    """States of a Ray job (https://docs.ray.io/en/latest/cluster/running-applications/job-submission/api.html)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @property
    def over(self) -> bool:
        return self in (RayJobState.STOPPED, RayJobState.SUCCEEDED, RayJobState.FAILED)


@dataclass(frozen=True, kw_only=True)
class RayJob:
    """A job that Ray knows."""

    state: RayJobState
    message: str = ""
    exit_code: int | None = None
    log: tuple[str, ...] = ()
    """The driver's last lines; read once the job is over."""
    final: Progress | None = None
    """The driver's last document, as its log holds it; read once the job is over."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the head answers."""

    lock: Lock = Lock.UNKNOWN
    ray_job: RayJob | None = None
    """The submitted job; None where Ray knows of none."""
    asked: bool = False
    """Whether Ray's Jobs API has answered, so that a missing job is known to be missing."""
    silence: str = ""
    """Who did not answer, and how."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One look at a job."""

    job: Job
    cluster: RayCluster | None = None
    pods: tuple[Pod, ...] = ()
    """Pods of the attempt that exist, the head first."""
    lost: tuple[Pod, ...] = ()
    """Pods of the attempt that are gone, as their last events showed them."""
    workload: Workload | None = None
    """Kueue's Workload of the RayCluster; looked for where one is to be expected."""
    former: tuple[Pod, ...] = ()
    """Pods of earlier attempts' RayClusters that still exist."""
    dead_nodes: frozenset[str] = frozenset()
    """Nodes that are absent or not ready, among those of pods that outstay their grace period."""
    inputs: Inputs | None = None
    head: Head | None = None
    progress: Progress | None = None
    """The driver's newest document."""
    silent_since: float | None = None
    """When the driver's /progress fell silent, in seconds since 1970; None while it answers or was not asked yet."""
    warning: str = ""
    """Newest warning Event of what stands still."""
    pending_claim: str = ""
    """The sentence about a claim without a volume, where pods wait for it."""
    refusal: str = ""
    """What the API server or Ray said to the action just tried."""

    @property
    def last_document(self) -> Progress | None:
        """What the driver last said: over /progress, or else in its log."""
        if self.progress is not None and self.progress.finished:
            return self.progress
        final = self.head.ray_job.final if self.head and self.head.ray_job else None
        return final or self.progress

    @property
    def readmitted(self) -> bool:
        """Whether Kueue took the pods and admitted the RayCluster again without anybody's looking. The times are both
        Kueue's: an admission is known by its time."""
        known = self.job.status.cluster.admission if self.job.status.cluster is not None else None
        if known is None or self.cluster is None or self.cluster.suspended or self.cluster.deleting:
            return False
        return self.workload is not None and self.workload.admitted not in (None, known)

    @property
    def core(self) -> tuple[Pod, ...]:
        """Pods that the attempt cannot do without: all of them, unless some come and go."""
        return tuple(pod for pod in self.pods if not pod.passing)

    @property
    def lost_core(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.lost if not pod.passing)

    @property
    def engine_pods(self) -> tuple[Pod, ...]:
        """Pods that come and go."""
        return tuple(pod for pod in self.pods if pod.passing)

    @property
    def pod_set(self) -> str:
        """Tells the pods that it cannot do without from others."""
        return pods.set_digest(self.core)

    @property
    def wanted_core(self) -> int:
        """The head, and the workers that stay."""
        plan = self.job.plan
        if plan is None:
            return 1
        return 1 + (plan.training_nodes if self.job.elastic else plan.nodes)

    @property
    def least_engine_pods(self) -> int:
        """Of the pods that come and go, those with which the attempt starts."""
        plan = self.job.plan
        return plan.least_nodes - plan.training_nodes if plan is not None and self.job.elastic else 0

    @property
    def wanted_engine_pods(self) -> int:
        """Of the pods that come and go, those for the engines that the driver wants; until it says so those that the
        RayCluster was made with."""
        plan = self.job.plan
        if plan is None or not self.job.elastic:
            return 0
        said = self.progress.engines if self.progress is not None else None
        if said is None or self.queue_managed:
            if self.engine_group is not None:
                return self.engine_group.replicas
            return plan.nodes_for(self.job.wanted_engines or plan.engines) - plan.training_nodes
        return min(max(plan.nodes_for(said.desired), plan.least_nodes), plan.nodes) - plan.training_nodes

    @property
    def engine_group(self) -> Group | None:
        """The workers that come and go, as the RayCluster has them."""
        return self.cluster.groups.get(pods.ENGINES) if self.cluster is not None else None

    @property
    def queue_managed(self) -> bool:
        """Whether Kueue manages the RayCluster, which it would suspend were its replicas changed."""
        named = self.cluster is not None and (self.cluster.queue or self.cluster.suspended)
        return bool(named) or self.job.status.admitted_time is not None

    @property
    def wanted_pods(self) -> int:
        """The head and the workers."""
        return self.wanted_core + self.wanted_engine_pods

    @property
    def staying(self) -> tuple[Pod, ...]:
        """Pods of any attempt that may still run. One past its grace period on a dead node cannot be asked: it counts
        as gone, and the fence keeps it from disturbing (trainer: checkpoints/fence.py)."""
        return tuple(pod for pod in (*self.pods, *self.former) if not (pod.deleting and pod.node in self.dead_nodes))

    @property
    def head_pod(self) -> Pod | None:
        return next((pod for pod in self.pods if pod.role == pods.HEAD), None)

    @property
    def workers(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if pod.role == pods.WORKER)

    @property
    def assembled(self) -> bool:
        """Whether every pod is ready, or was once and is still there: a probe that misses a beat undoes nothing. Of
        those that come and go as many as it starts with."""
        cluster = self.job.status.cluster
        whole = cluster is not None and cluster.pod_set is not None and cluster.pod_set == self.pod_set
        return self.ready or (whole and self.cluster is not None)

    @property
    def scheduled(self) -> bool:
        """Whether every pod that it starts with is there and has a node."""
        core, passing = self.core, [pod for pod in self.engine_pods if pod.scheduled and not pod.ended]
        whole = len(core) == self.wanted_core and all(pod.scheduled for pod in core)
        return whole and len(passing) >= self.least_engine_pods

    @property
    def ready(self) -> bool:
        """Whether every pod that it starts with is there and ready."""
        core = _alive(self.core)
        whole = len(core) == len(self.core) == self.wanted_core and self.head_pod is not None
        return self.cluster is not None and whole and self.ready_engine_pods >= self.least_engine_pods

    @property
    def ready_engine_pods(self) -> int:
        """Of the pods that come and go, those that are there and ready."""
        return len(_alive(self.engine_pods))

    @property
    def awaited(self) -> tuple[Pod, ...]:
        """Pods that the start may wait for: those that come and go while not enough of them come up."""
        come = sum(pod.ready or pod.comes_up for pod in self.engine_pods)
        return self.core if come >= self.least_engine_pods else self.pods


def _alive(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.ready and not pod.ended and not pod.deleting]
