"""What `status` tells: pure functions from the API server's documents and the driver's account to one document."""

from collections.abc import Sequence
from typing import Any

from kubectl_simplerl.chart import Point
from kubectl_simplerl.head import Live
from simplerl_api import names
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.kubernetes_api import Document

NEWEST_STEPS = 10
"""Steps whose mean is the split of a step's time."""
NEWEST_EVENTS = 8
_KEPT = (
    "training", "evaluations", "checkpoint", "model", "failure", "attempts", "adaptations", "versions",
    "startTime", "completionTime",
)  # fmt: skip


def row(job: Document, now: float) -> dict[str, str]:
    """One line of `list`: the CRD's own columns."""
    metadata, status = job["metadata"], job.get("status", {})
    summary = status.get("summary", {})
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "phase": status.get("phase", ""),
        "step": summary.get("step", ""),
        "progress": summary.get("progress", ""),
        "reward": summary.get("reward", ""),
        "eval": summary.get("eval", ""),
        "duration": duration(status, now),
        "age": clock.duration(now - clock.seconds(metadata["creationTimestamp"])),
        "reason": condition(job, "Ready").get("reason", ""),
        "model": summary.get("model", ""),
        "gpus": str(job.get("spec", {}).get("cluster", {}).get("gpus", "")),
        "cluster": (status.get("cluster") or {}).get("name", ""),
    }


def report(job: Document, pods: Sequence[Document], events: Sequence[Document], live: Live, now: float) -> Document:
    """Everything of one job."""
    metadata, status = job["metadata"], job.get("status", {})
    ready = condition(job, "Ready")
    steps = live.history.get("steps", [])
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "phase": status.get("phase", ""),
        "reason": ready.get("reason", ""),
        "message": ready.get("message", ""),
        "suspended": bool(job.get("spec", {}).get("suspend", False)),
        "attempt": status.get("attempt"),
        "age": clock.duration(now - clock.seconds(metadata["creationTimestamp"])),
        "duration": duration(status, now),
        **{name: status[name] for name in _KEPT if name in status},
        "activity": live.activity,
        "curves": curves(live, status),
        "seconds": seconds(steps),
        "cluster": {**(status.get("cluster") or {}), "pods": [_pod(pod) for pod in _ordered(pods)]},
        "conditions": status.get("conditions", []),
        "events": [_event(event) for event in _newest(events)],
        "driver": live.silence or "answers",
    }


def condition(job: Document, kind: str) -> dict[str, Any]:
    """The condition of this type, or an empty one."""
    found = job.get("status", {}).get("conditions", [])
    return next((c for c in found if c["type"] == kind), {})


def phase(job: Document) -> str:
    return str(job.get("status", {}).get("phase", ""))


def over(job: Document) -> bool:
    """Whether nothing more will happen to the job."""
    return phase(job) in (Phase.SUCCEEDED, Phase.FAILED)


def refused(job: Document) -> bool:
    """Whether the job waits for an edit."""
    return condition(job, "Stalled").get("status") == "True" and not over(job)


def duration(status: Document, now: float) -> str:
    """Time from the start to the end, or until now."""
    if "startTime" not in status:
        return ""
    end = clock.seconds(status["completionTime"]) if "completionTime" in status else now
    return clock.duration(end - clock.seconds(status["startTime"]))


def curves(live: Live, status: Document) -> dict[str, list[Point]]:
    """Reward and accuracies by step: the driver's, or else the few results that the object holds."""
    history = live.history
    if history:
        reward = [(s["step"], float(s["reward"])) for s in history.get("steps", []) if s.get("reward") is not None]
        found = {"reward": reward}
        for name, results in history.get("evaluations", {}).items():
            found[f"{name} accuracy"] = [(r["step"], float(r["accuracy"])) for r in results]
        return {name: points for name, points in found.items() if points}
    out: dict[str, list[Point]] = {}
    for evaluation in status.get("evaluations", []):
        known = {r["step"]: float(r["accuracy"]) for r in (evaluation[k] for k in ("first", "best", "last"))}
        out[f"{evaluation['dataset']} accuracy"] = sorted(known.items())
    return out


def seconds(steps: Sequence[Document]) -> dict[str, float]:
    """Mean seconds of the newest steps by part, and `total`."""
    newest = [step["seconds"] for step in steps[-NEWEST_STEPS:] if step.get("seconds")]
    parts = {part: None for split in newest for part in split}
    return {part: round(sum(split.get(part, 0.0) for split in newest) / len(newest), 3) for part in parts}


def _pod(pod: Document) -> dict[str, Any]:
    status = pod.get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    statuses = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    waits = [s["state"]["waiting"].get("reason", "") for s in statuses if "waiting" in s.get("state", {})]
    ended = [s["state"]["terminated"].get("reason", "") for s in statuses if "terminated" in s.get("state", {})]
    return {
        "name": pod["metadata"]["name"],
        "role": pod["metadata"].get("labels", {}).get(names.LABEL_ROLE, ""),
        "phase": "Terminating" if "deletionTimestamp" in pod["metadata"] else status.get("phase", "Pending"),
        "ready": conditions.get("Ready") == "True",
        "node": pod["spec"].get("nodeName", ""),
        "reason": next(filter(None, [*waits, *ended, status.get("reason", "")]), ""),
    }


def _ordered(pods: Sequence[Document]) -> Sequence[Document]:
    def key(pod: Document) -> tuple[bool, str]:
        return pod["metadata"].get("labels", {}).get(names.LABEL_ROLE) != "head", pod["metadata"]["name"]

    return sorted(pods, key=key)


def _newest(events: Sequence[Document]) -> Sequence[Document]:
    return sorted(events, key=_time)[-NEWEST_EVENTS:]


def _time(event: Document) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _event(event: Document) -> dict[str, str]:
    kind = event["involvedObject"]
    return {
        "time": _time(event),
        "type": event.get("type", ""),
        "object": f"{kind.get('kind', '')}/{kind.get('name', '')}",
        "reason": event.get("reason", ""),
        "message": event.get("message", ""),
    }
