"""What schedulers and queues read, passed on from the job to its children: by this list, never wholesale, since tools
recognise objects by labels and annotations that were copied (kuberay#5114)."""

from collections.abc import Mapping, Sequence

from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.workload import QUEUE

_CLUSTER_LABELS = (
    # Kueue takes a RayCluster whose owner it does not manage for the top of its tree
    QUEUE,
    "kueue.x-k8s.io/priority-class",
    # KubeRay's batch schedulers read these at the RayCluster and give its pods what they need
    "ray.io/priority-class-name",
    "ray.io/gang-scheduling-enabled",
    "volcano.sh/queue-name",
    "volcano.sh/network-topology-mode",
    "volcano.sh/network-topology-highest-tier-allowed",
    "yunikorn.apache.org/app-id",
    "yunikorn.apache.org/queue",
    "kai.scheduler/queue",
)
_CLUSTER_ANNOTATIONS = ("scheduling.volcano.sh/queue-name", "yunikorn.apache.org/task-groups")

_POD_LABELS = ("yunikorn.apache.org/app-id", "yunikorn.apache.org/queue", "kai.scheduler/queue")
"""For a scheduler that is named by cluster.schedulerName while KubeRay's own support for it is off."""
_POD_ANNOTATIONS = (
    "scheduling.volcano.sh/queue-name",
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-group-name",
)
_WORKER_ANNOTATIONS = (
    # the head is one pod: Kueue refuses a slice that is larger than its set of pods
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-size",
)


def cluster_labels(job: Job) -> dict[str, str]:
    return _chosen(job.labels, _CLUSTER_LABELS)


def cluster_annotations(job: Job) -> dict[str, str]:
    return _chosen(job.annotations, _CLUSTER_ANNOTATIONS)


def pod_labels(job: Job) -> dict[str, str]:
    return _chosen(job.labels, _POD_LABELS)


def pod_annotations(job: Job, role: str) -> dict[str, str]:
    return _chosen(job.annotations, _POD_ANNOTATIONS + (_WORKER_ANNOTATIONS if role == pods.WORKER else ()))


def _chosen(given: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: given[name] for name in names if name in given}
