"""Kueue's Workload of a RayCluster: whether it may run, and why not (https://kueue.sigs.k8s.io/docs/concepts/workload/)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

QUEUE = "kueue.x-k8s.io/queue-name"
"""Label of what Kueue is to manage: its LocalQueue."""
JOB_UID = "kueue.x-k8s.io/job-uid"
"""Label of a Workload: the uid of the object that it stands for."""


@dataclass(frozen=True)
class WorkloadCondition:
    """A condition of a Workload."""

    status: str
    reason: str
    message: str
    since: str
    """When the status last changed."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One Workload."""

    name: str
    queue: str
    """Name of its LocalQueue."""
    conditions: Mapping[str, WorkloadCondition] = field(default_factory=dict)

    @property
    def admitted(self) -> str | None:
        """Since when it may run; None where it may not."""
        condition = self.conditions.get("Admitted")
        return condition.since if condition is not None and condition.status == "True" else None

    @property
    def evicted(self) -> WorkloadCondition | None:
        """Why what ran was stopped, until it is admitted again."""
        condition = self.conditions.get("Evicted")
        return condition if condition is not None and condition.status == "True" else None

    @property
    def evicted_before(self) -> str:
        """Why what ran was stopped at an earlier time; Kueue keeps the words when it admits it again."""
        condition = self.conditions.get("Evicted")
        return condition.message.removeprefix("Previously: ") if condition is not None else ""

    @property
    def waiting(self) -> str:
        """Why it has no quota, in Kueue's words."""
        condition = self.conditions.get("QuotaReserved")
        return condition.message if condition is not None and condition.status == "False" else ""


def read(document: Mapping[str, Any]) -> Workload:
    """The Workload in a document of the API server."""
    return Workload(
        name=document["metadata"]["name"],
        queue=document["spec"].get("queueName", ""),
        conditions={
            c["type"]: WorkloadCondition(
                c["status"], c.get("reason", ""), c.get("message", ""), c["lastTransitionTime"]
            )
            for c in (document.get("status") or {}).get("conditions") or []
        },
    )
