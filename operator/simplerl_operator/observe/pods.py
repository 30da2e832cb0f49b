"""The pods of an attempt, and how their containers fare."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simplerl_api import names
from simplerl_api.status import Termination
from simplerl_operator import clock
from simplerl_operator.redaction import redact

_DISRUPTED = frozenset({"Evicted", "Preempting", "NodeShutdown", "Terminated", "Shutdown", "NodeLost", "NodeAffinity"})
_OWN_LIMIT = ("exceeds the limit", "exceeded its local", "exceeds the total limit", "exceeded the total limit")
"""Words of kubelet where a pod took more ephemeral storage than its own limit."""
OUT_OF_MEMORY = "OOMKilled"
"""kubelet's word for a container whose process the kernel ended at the container's memory limit."""
_LATE = 5.0
"""Seconds after a pod's grace period in which kubelet may still be about to tell of its end."""
_BY_SIGNAL = 128
"""Exit codes from here on are 128 and the number of a signal."""
_LOG_LENGTH, _LINE_LENGTH = 1024, 300
STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Why a container waits that is about to start."""
HEAD = "head"
WORKER = "worker"
ENGINES = "engines"
"""The group of workers that hold engines alone, where those come and go."""
_GROUP = "ray.io/group"
"""KubeRay's label."""


@dataclass(frozen=True)
class Waiting:
    """A container that cannot start."""

    container: str
    reason: str
    message: str
    image: str


@dataclass(frozen=True, kw_only=True)
class Pod:
    """One pod."""

    name: str
    uid: str
    job_uid: str
    """Uid of the job that it was made for."""
    role: str
    """head or worker."""
    group: str = ""
    """Its group of workers in the RayCluster."""
    attempt: int
    created: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    ready: bool = False
    deleting: bool = False
    scheduled: bool = True
    unscheduled: str = ""
    """The scheduler's message where it found no node."""
    placed: float | None = None
    """When it got its node, in seconds since 1970; as read, by the cluster's clock."""
    node: str = ""
    """Name of its node; empty where it has none."""
    due: float | None = None
    """When its grace period ends, in seconds since 1970, once it is being deleted; as read, by the cluster's clock."""
    disruption: str = ""
    """Why the cluster ends the pod, where it does: preemption, eviction, drain, a lost node."""
    address: str | None = None
    """The pod's IP."""
    reason: str = ""
    """Why the pod as a whole ended, for example Evicted."""
    message: str = ""
    waiting: tuple[Waiting, ...] = ()
    terminations: tuple[Termination, ...] = ()
    """Containers that ended other than well."""
    memory: Mapping[str, str] = field(default_factory=dict)
    """Memory limits by container, as far as there are any."""
    auth_mode: str = ""
    """RAY_AUTH_MODE of the Ray container."""

    @property
    def passing(self) -> bool:
        """Whether it may come and go while the attempt goes on."""
        return self.group == ENGINES

    @property
    def ended(self) -> bool:
        """Whether its containers are gone for good (the restart policy is Never)."""
        return self.phase in ("Failed", "Succeeded")

    @property
    def comes_up(self) -> bool:
        """Whether it is on its way to being ready, and nothing keeps it from there."""
        held = self.unscheduled or self.terminations or any(w.reason not in STARTING for w in self.waiting)
        return not (self.ready or self.ended or self.deleting or held)

    def outstays(self, now: float) -> bool:
        """Whether it is still there though its grace period is over."""
        return self.due is not None and now > self.due + _LATE

    @property
    def story(self) -> str:
        """How it ended, in a few words."""
        if self.terminations:
            return ", ".join(f"container {t.container} {_ending(t)}{self._limit(t)}" for t in self.terminations)
        if self.reason or self.message:
            return ": ".join(part for part in (self.reason, self.message) if part)
        return f"phase {self.phase}" if self.ended else "it was deleted"

    def _limit(self, termination: Termination) -> str:
        if termination.reason != OUT_OF_MEMORY or termination.container not in self.memory:
            return ""
        return f" at its memory limit of {self.memory[termination.container]}"


def read(document: Mapping[str, Any]) -> Pod:
    """The pod in a document of the API server."""
    metadata, spec, status = document["metadata"], document["spec"], document.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {c["type"]: c for c in status.get("conditions") or []}
    placed = conditions.get("PodScheduled", {})
    statuses = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        job_uid=labels.get(names.LABEL_UID, ""),
        role=labels.get(names.LABEL_ROLE, ""),
        group=labels.get(_GROUP, ""),
        attempt=int(attempt) if (attempt := labels.get(names.LABEL_ATTEMPT, "")).isdigit() else 0,
        created=metadata["creationTimestamp"],
        phase=status.get("phase", "Pending"),
        ready=conditions.get("Ready", {}).get("status") == "True",
        deleting="deletionTimestamp" in metadata,
        scheduled=placed.get("status") == "True" or bool(spec.get("nodeName")),
        placed=clock.seconds(time)
        if placed.get("status") == "True" and (time := placed.get("lastTransitionTime"))
        else None,
        node=spec.get("nodeName") or "",
        due=clock.seconds(metadata["deletionTimestamp"]) if "deletionTimestamp" in metadata else None,
        disruption=_disruption(conditions.get("DisruptionTarget", {}), status),
        unscheduled=placed.get("message", "") if placed.get("reason") == "Unschedulable" else "",
        address=status.get("podIP"),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        waiting=tuple(
            Waiting(
                s["name"], s["state"]["waiting"].get("reason", ""), s["state"]["waiting"].get("message", ""), s["image"]
            )
            for s in statuses
            if "waiting" in (s.get("state") or {})
        ),
        terminations=tuple(
            _termination(metadata["name"], s["name"], t)
            for s in statuses
            if (t := (s.get("state") or {}).get("terminated") or (s.get("lastState") or {}).get("terminated"))
            and t["exitCode"] != 0
        ),
        memory={
            container["name"]: limit
            for container in (*(spec.get("initContainers") or []), *spec["containers"])
            if (limit := ((container.get("resources") or {}).get("limits") or {}).get("memory"))
        },
        auth_mode=_auth_mode(spec),
    )


def _disruption(target: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions; kubelets of older
    versions say it with the pod's reason alone. A pod that is evicted since it took more than its own limit is no
    victim of others."""
    said = str(status.get("message", ""))
    if own_limit(said):
        return ""
    if target.get("status") == "True":
        return ": ".join(part for part in (target.get("reason", ""), target.get("message", "")) if part)
    if status.get("reason") in _DISRUPTED:
        return ": ".join(part for part in (status["reason"], said) if part)
    return ""


def by_our_clock(pod: Pod, ahead: float) -> Pod:
    """The pod with its times by a clock that the cluster's is ahead of."""
    placed, due = (None if time is None else time - ahead for time in (pod.placed, pod.due))
    return replace(pod, placed=placed, due=due)


def own_limit(message: str) -> bool:
    """Whether kubelet speaks of a limit that is the pod's own."""
    return any(word in message for word in _OWN_LIMIT)


def set_digest(pods: Iterable[Pod]) -> str:
    """Tells one set of pods from another: pods that were replaced have other uids."""
    return hashlib.sha256(" ".join(sorted(pod.uid for pod in pods)).encode()).hexdigest()[:16]


def ordered(pods: Iterable[Pod]) -> Sequence[Pod]:
    """The head first, then the workers by name; those that come and go last."""
    return sorted(pods, key=lambda pod: (pod.role != HEAD, pod.passing, pod.name))


def _auth_mode(spec: Mapping[str, Any]) -> str:
    variables = [v for container in spec["containers"][:1] for v in container.get("env") or []]
    return next((v.get("value", "") for v in variables if v["name"] == "RAY_AUTH_MODE"), "")


def redacted(pod: Pod, token: str) -> Pod:
    """The pod without the job's token in what its containers said."""
    if not pod.terminations:
        return pod
    clean = (t if t.log is None else t.model_copy(update={"log": redact(t.log, token)}) for t in pod.terminations)
    return replace(pod, terminations=tuple(clean))


def _termination(pod: str, container: str, terminated: Mapping[str, Any]) -> Termination:
    """kubelet's message is what the container wrote last
    (https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/). One that a signal ended
    did not know of its end."""
    code, said = terminated["exitCode"], str(terminated.get("message", "")).strip()
    log = said[-_LOG_LENGTH:] if said and code < _BY_SIGNAL else None
    return Termination(pod=pod, container=container, exit_code=code, reason=terminated.get("reason", ""), log=log)


def _ending(termination: Termination) -> str:
    """How a container ended, with its last line."""
    last = "" if termination.log is None else f": {termination.log.splitlines()[-1].strip()[-_LINE_LENGTH:]}"
    return f"{termination.reason or 'ended'} (exit code {termination.exit_code}){last}"
