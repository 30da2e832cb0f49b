"""What a platform team sets for all jobs of a cluster (the chart's jobDefaults). A job's own fields win over it."""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field, JsonValue

from simplerl_api.spec.cluster import Cluster, Pods, PullSecret, Quantity, Resources
from simplerl_api.struct import Struct, Text


class PerGpu(Struct):
    """What a worker's Ray container requests for each of its GPUs; not for jobs that are cpuOnly."""

    cpu: Quantity | None = None
    """CPUs for each GPU. Absent: 8."""
    memory: Quantity | None = None
    """Memory for each GPU; the limit is twice as much. Absent: 64Gi."""


class PodDefaults(Struct):
    """Where pods of one kind run."""

    node_selector: Annotated[dict[Text, Text], Field(max_length=32)] = Field(default_factory=dict)
    """Labels that a node must have; a label that the job names has the job's value."""
    tolerations: Annotated[list[dict[str, JsonValue]], Field(max_length=32)] = Field(default_factory=list)
    """Taints that the pods tolerate, beside those that the job tolerates."""


class JobDefaults(Struct):
    """Settings of all jobs; recorded in status.plan at the first start, so that a change reaches new jobs only."""

    image_mirror: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9._:/-]*[a-z0-9])?$", max_length=253)] | None = None
    """Where images are pulled from, in place of the registry that their names begin with: registry.example/mirror."""
    image_pull_secrets: Annotated[list[PullSecret], Field(max_length=8)] = Field(default_factory=list)
    """Credentials of jobs that name none; Secrets of the job's namespace."""
    priority_class_name: Text | None = None
    """PriorityClass of jobs that name none."""
    scheduler_name: Text | None = None
    """Scheduler of jobs that name none."""
    per_gpu: PerGpu = Field(default_factory=PerGpu)
    """Requests of workers by the GPU, for jobs without cluster.workers.resources."""
    head: PodDefaults = Field(default_factory=PodDefaults)
    """Where heads run."""
    workers: PodDefaults = Field(default_factory=PodDefaults)
    """Where workers run."""

    def cluster(self, given: Cluster) -> Cluster:
        """A job's cluster section with these defaults where the job leaves a field out."""
        return given.model_copy(
            update={
                "image_pull_secrets": given.image_pull_secrets or self.image_pull_secrets,
                "priority_class_name": given.priority_class_name or self.priority_class_name,
                "scheduler_name": given.scheduler_name or self.scheduler_name,
                "head": _where(given.head, self.head),
                "workers": _where(given.workers, self.workers),
            }
        )

    def image(self, name: str) -> str:
        """The name by which an image is pulled."""
        mirror = self.image_mirror
        if mirror is None or name.startswith(f"{mirror}/"):
            return name
        # a registry is told from a folder as container runtimes do it
        first, _, rest = name.partition("/")
        registry = bool(rest) and (first == "localhost" or "." in first or ":" in first)
        return f"{mirror}/{rest if registry else name}"

    def worker_resources(self, stated: Resources, gpus: int) -> Resources:
        """A worker's requests and limits, where the job has none: the stated ones with these amounts by the GPU."""
        requests, limits = dict(stated.requests), dict(stated.limits)
        if self.per_gpu.cpu is not None:
            requests["cpu"] = _times(self.per_gpu.cpu, gpus)
        if self.per_gpu.memory is not None:
            requests["memory"] = _times(self.per_gpu.memory, gpus)
            limits["memory"] = _times(self.per_gpu.memory, 2 * gpus)
        return Resources(requests=requests, limits=limits)


def _where(given: Pods, defaults: PodDefaults) -> Pods:
    return given.model_copy(
        update={
            "node_selector": {**defaults.node_selector, **given.node_selector},
            "tolerations": [*given.tolerations, *(t for t in defaults.tolerations if t not in given.tolerations)],
        }
    )


def _times(quantity: str, factor: int) -> str:
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", quantity).groups()  # type: ignore[union-attr]
    return f"{(Decimal(number) * factor).normalize():f}{unit}"
