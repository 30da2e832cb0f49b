"""What outlives pods that went while nobody looked: Events about them, and the nodes that they were on. The condition
DisruptionTarget, which says that the cluster took a pod, goes with the pod itself."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from simplerl_operator import clock
from simplerl_operator.build.ray_cluster import WORKERS
from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.pods import HEAD, WORKER, Pod

EVENTS = "involvedObject.kind=Pod," + ",".join(
    f"reason!={reason}" for reason in ("FailedScheduling", "Pulling", "Pulled", "Created", "Started", "Unhealthy")
)
"""Selects the Events of pods without those that are many and tell nothing of an end."""

_TAKERS = frozenset({
    "Preempted",  # kube-scheduler
    "Preempting", "Evicted",  # kubelet; Karpenter says Evicted too
    "TaintManagerEviction",  # the node controllers; without the pod's uid
    "ScaleDown",  # cluster-autoscaler
})  # fmt: skip
_TAKEN_BACK = "Cancelling"
"""How the taint manager's message begins where the taint went in time; its reason stays the same."""
_ASSIGNED = "Scheduled"
_LONGEST = 50
"""Characters that KubeRay leaves of a name before the role (utils.PodName)."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What Events tell of one pod."""

    name: str
    node: str = ""
    """Where it was; empty where no Event says it."""
    taken: str = ""
    """Who took it, in the Event's words; empty where no Event says so."""


def traces(
    events: Iterable[Mapping[str, Any]], cluster: str, since: Sequence[str], there: Set[str]
) -> tuple[Trace, ...]:
    """The pods of a RayCluster that are gone and left Events, the head first; `there` holds the names of those that
    are not gone. `since`: times before which a pod of the same name was another one; they and those of Events are of
    the cluster's clocks."""
    first = max(map(clock.seconds, since), default=0.0)
    found: dict[str, Trace] = {}
    for event in sorted(events, key=_time):
        name = event["involvedObject"].get("name", "")
        if _role(name, cluster) is None or name in there or _time(event) < first:
            continue
        before = found.get(name, Trace(name=name))
        found[name] = Trace(name=name, node=_node(event) or before.node, taken=_taken(event, before.taken))
    return tuple(sorted(found.values(), key=lambda trace: (_role(trace.name, cluster) != HEAD, trace.name)))


def of_node(name: str, document: Mapping[str, Any] | None) -> str:
    """Why pods leave a node, as it stands; empty where they need not."""
    if document is None:
        return f"its node {name} is gone"
    spec, status = document.get("spec") or {}, document.get("status") or {}
    if spec.get("unschedulable"):
        return f"its node {name} is cordoned"
    ready = next((c["status"] for c in status.get("conditions") or [] if c["type"] == "Ready"), "Unknown")
    if ready != "True":
        return f"its node {name} is not ready"
    taint = next((t["key"] for t in spec.get("taints") or [] if t["effect"] == "NoExecute"), None)
    return f"its node {name} has the NoExecute taint {taint}" if taint is not None else ""


def taken_pod(job: Job, trace: Trace, disruption: str) -> Pod:
    """A pod of the attempt that is gone, as far as it is known."""
    return Pod(
        name=trace.name, uid="", job_uid=job.uid, role=_role(trace.name, job.cluster_name) or "",
        attempt=job.cluster_attempt, created="", phase="Unknown", node=trace.node, disruption=disruption,
    )  # fmt: skip


def _role(pod: str, cluster: str) -> str | None:
    if pod == f"{cluster[:_LONGEST]}-{HEAD}":
        return HEAD
    return WORKER if pod.startswith(f"{f'{cluster}-{WORKERS}'[:_LONGEST]}-{WORKER}-") else None


def _taken(event: Mapping[str, Any], before: str) -> str:
    reason, message = event.get("reason", ""), event.get("message", "")
    if reason not in _TAKERS or pods.own_limit(message):
        return before
    return "" if message.startswith(_TAKEN_BACK) else f"{reason}: {message}"


def _node(event: Mapping[str, Any]) -> str:
    """kubelet's Events bear its node's name, the scheduler's says it."""
    source = event.get("source") or {}
    if source.get("component") == "kubelet":
        return str(source.get("host", ""))
    return str(event.get("message", "")).rpartition(" to ")[2] if event.get("reason") == _ASSIGNED else ""


def _time(event: Mapping[str, Any]) -> float:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return clock.seconds(next(filter(None, times), None) or event["metadata"]["creationTimestamp"])
