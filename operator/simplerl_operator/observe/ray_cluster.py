"""The RayCluster of an attempt, as KubeRay reports it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simplerl_operator.observe.workload import QUEUE


@dataclass(frozen=True)
class RayCondition:
    """A condition of a RayCluster."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of workers."""

    index: int
    """Its place in the spec."""
    replicas: int
    """Pods that it should have."""
    leaving: tuple[str, ...] = ()
    """Pods that KubeRay was told to delete: for as long as they are there it does not count them."""


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """A RayCluster. `status.state` is left out on purpose: it says `ready` long after the head is gone. So is the
    condition HeadPodReady, which KubeRay copies from the head pod, by seconds too late where it has much to do."""

    name: str
    uid: str
    owner_uid: str
    """Uid of the controlling owner; empty where there is none."""
    created: str
    deleting: bool = False
    suspended: bool = False
    """spec.suspend, which is Kueue's alone: the operator never sets it."""
    conditions: Mapping[str, RayCondition] = field(default_factory=dict)
    head_service: str | None = None
    resource_version: str = ""
    groups: Mapping[str, Group] = field(default_factory=dict)
    """Groups of workers by name."""
    queue: str = ""
    """Its LocalQueue of Kueue, also where Kueue gave it a default one; empty where there is none."""

    @property
    def thrives(self) -> bool:
        """Whether there is nothing to be said of it: how its pods fare, they tell themselves."""
        return not (self.deleting or self.suspended or self.replica_failure)

    @property
    def replica_failure(self) -> str | None:
        """Why KubeRay cannot make pods, in the API server's words."""
        condition = self.conditions.get("ReplicaFailure")
        return condition.message if condition is not None and condition.status == "True" else None


def read(document: Mapping[str, Any]) -> RayCluster:
    """The RayCluster in a document of the API server."""
    metadata, status = document["metadata"], document.get("status") or {}
    owners = [o for o in metadata.get("ownerReferences", []) if o.get("controller")]
    return RayCluster(
        name=metadata["name"],
        uid=metadata["uid"],
        owner_uid=owners[0]["uid"] if owners else "",
        created=metadata["creationTimestamp"],
        deleting="deletionTimestamp" in metadata,
        suspended=bool(document.get("spec", {}).get("suspend")),
        conditions={
            c["type"]: RayCondition(c["status"], c.get("reason", ""), c.get("message", ""))
            for c in status.get("conditions") or []
        },
        head_service=(status.get("head") or {}).get("serviceName"),
        resource_version=metadata.get("resourceVersion", ""),
        groups={
            group["groupName"]: Group(
                index=i,
                replicas=group.get("replicas") or 0,
                leaving=tuple((group.get("scaleStrategy") or {}).get("workersToDelete") or ()),
            )
            for i, group in enumerate(document.get("spec", {}).get("workerGroupSpecs") or [])
        },
        queue=(metadata.get("labels") or {}).get(QUEUE, ""),
    )
