"""The links that the head tells of: its ports, the lock, Ray's nodes, the Ray job, the driver and its engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubectl_simplerl.link import Link, broken, ok, unseen, waits
from simplerl_operator import clock
from simplerl_operator.kubernetes_api import Document

_STALL_SECONDS = 1800
"""spec.recovery.stallTimeoutSeconds where the spec leaves it out."""


@dataclass(frozen=True, kw_only=True)
class HeadSight:
    """What the head's ports answered. Sentences are those of what did not work; empty where it did."""

    ports: str = ""
    without: int = 0
    """Status of the dashboard's answer without a token."""
    token: str = ""
    """Why the token cannot be had."""
    given: int = 0
    """Status of the dashboard's answer to the job's token."""
    nodes: Sequence[Mapping[str, Any]] | None = None
    nodes_fault: str = ""
    ray_job: Mapping[str, Any] | None = None
    ray_job_fault: str = ""
    progress: Mapping[str, Any] | None = None
    progress_fault: str = ""


def ports(seen: HeadSight) -> Link:
    if seen.ports:
        return broken(
            "ports",
            f"{seen.ports}: does a NetworkPolicy, or the missing right to create pods/portforward, bar the way?",
        )
    return ok("ports", "the head's dashboard answers")


def lock(seen: HeadSight) -> Link:
    if seen.without == 200:
        return broken(
            "lock",
            "the dashboard answers without a token, so that every pod "
            "that reaches it can run code there: install KubeRay "
            "1.6 or newer, which knows authOptions",
        )
    if seen.token:
        return unseen(
            "lock", f"it demands a token; {seen.token}; what only the token shows is taken from the job's status"
        )
    if seen.given in (401, 403):
        return broken(
            "lock",
            f"the dashboard answers {seen.given} to the job's token: its Secret was changed after the pods had started",
        )
    if seen.without not in (401, 403) or seen.given != 200:
        return broken(
            "lock",
            f"the dashboard answers {seen.without} without a token and {seen.given} with it: 401 and 200 are expected",
        )
    return ok("lock", "401 without the token, 200 with it")


def nodes(seen: HeadSight, plan: Mapping[str, Any], workers: int) -> Link:
    """Whether Ray has as many nodes as there are worker pods, with the GPUs of the plan."""
    if seen.nodes is None:
        return unseen("Ray nodes", seen.nodes_fault or seen.token)
    alive = [node for node in seen.nodes if node.get("state") == "ALIVE" and not node.get("is_head_node")]
    dead = [node for node in seen.nodes if node.get("state") == "DEAD"]
    if len(alive) < workers:
        last = f"; node {dead[-1].get('node_ip')} is dead: {dead[-1].get('state_message')}" if dead else ""
        return broken(
            "Ray nodes",
            f"{len(alive)} of {workers} workers have joined Ray{last}; kubectl logs of the others' pods says why",
        )
    per_node = int(plan.get("gpusPerNode", 0))
    for node in alive:
        resources = node.get("resources_total")
        if isinstance(resources, Mapping) and "GPU" in resources and float(resources["GPU"]) < per_node:
            return broken(
                "Ray nodes",
                f"node {node.get('node_ip')} has {float(resources['GPU']):g} "
                f"GPUs, the plan {per_node}: look at nvidia-smi there",
            )
    return ok("Ray nodes", f"{len(alive)} of {workers} workers are alive")


def ray_job(seen: HeadSight, submission: str | None) -> Link:
    if submission is None:
        return waits("Ray job", "the driver has not been submitted yet")
    if seen.ray_job is None:
        if seen.token:
            return unseen("Ray job", seen.token)
        return broken(
            "Ray job", seen.ray_job_fault or f"Ray does not know the job {submission}: its head was restarted"
        )
    state = str(seen.ray_job.get("status", ""))
    if state not in ("PENDING", "RUNNING"):
        said = " ".join(str(seen.ray_job.get("message") or "it says no more").split())[-300:]
        return broken("Ray job", f"Ray job {submission} is {state}: {said}; kubectl simplerl logs shows its log")
    return ok("Ray job", f"Ray job {submission} is {state}")


def driver(seen: HeadSight, job: Document, now: float) -> Link:
    """Whether the driver answers, and moved lately."""
    spec, status = job.get("spec", {}), job.get("status", {})
    limit = (spec.get("recovery") or {}).get("stallTimeoutSeconds", _STALL_SECONDS)
    if seen.progress is None and not seen.token:
        return broken("driver", f"{seen.progress_fault}: the driver is silent; kubectl simplerl logs shows its log")
    said = seen.progress
    if said is not None:
        moved, step, total = float(said.get("lastProgress") or now), said.get("step", 0), said.get("totalSteps", 0)
    else:
        training = status.get("training") or {}
        if "lastProgressTime" not in status:
            return unseen("driver", "the job's status tells of no progress yet")
        moved, step, total = (
            clock.seconds(status["lastProgressTime"]),
            training.get("step", 0),
            training.get("totalSteps", 0),
        )
    age = max(0.0, now - moved)
    # at half of the time after which the operator ends the attempt there is still time to look
    if age > limit / 2:
        doing = (said or {}).get("activity") or "what it did last"
        return broken(
            "driver",
            f"nothing has moved for {clock.duration(age)} in step "
            f"{step + 1} ({doing}); after recovery.stallTimeoutSeconds {limit} "
            "the attempt is ended: kubectl simplerl logs --ranks shows where it stands",
        )
    return ok("driver", f"step {step}/{total}, moved {clock.duration(age)} ago")


def engines(seen: HeadSight, status: Document, *, elastic: bool) -> Link:
    """Whether all engines that are wanted live, and the newest step's figures are finite."""
    said = seen.progress or {}
    if bad := said.get("nonFinite"):
        return broken(
            "engines",
            f"metrics of the newest step are not finite: {', '.join(bad)}; "
            "lower training.actor.learningRate, or look at the data",
        )
    found = said.get("engines")
    if found is None:
        live = ((status.get("training") or {}).get("metrics") or {}).get("engines")
        return unseen("engines", "the driver tells of none yet") if live is None else ok("engines", f"{live:g} live")
    if found["current"] < found["desired"] and elastic:
        return ok("engines", f"{found['current']} of {found['desired']} live; the others come and go")
    if found["current"] < found["desired"]:
        return broken(
            "engines",
            f"{found['current']} of {found['desired']} engines live: "
            "kubectl simplerl logs has a line 'engine lost' for each",
        )
    return ok("engines", f"{found['current']} of {found['desired']} live")
