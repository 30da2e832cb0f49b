"""Builders of what an observer may have seen."""

import copy
import json
from dataclasses import replace
from typing import Any

from tests.operator import documents

from simplerl_api.progress import Progress
from simplerl_api.status import Termination
from simplerl_operator.clock import rfc3339
from simplerl_operator.observe import job as jobs
from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.observation import Head, Lock, Observation, RayJob, RayJobState
from simplerl_operator.observe.pods import Pod
from simplerl_operator.observe.ray_cluster import RayCluster, RayCondition

NOW = 1_800_000_000.0
UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
CLUSTER = "tiny-0a1b2-1"
READY = {"HeadPodReady": RayCondition("True", "HeadPodRunningAndReady", "")}


def job(
    status: dict[str, Any] | None = None,
    *,
    deleting: bool = False,
    name: str = "tiny",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **sections: Any,
) -> Job:
    """The tiny job with a status."""
    metadata: dict[str, Any] = {
        "name": name, "namespace": "team-a", "uid": UID, "generation": 2, "resourceVersion": "7"
    }  # fmt: skip
    metadata |= {k: v for k, v in (("labels", labels), ("annotations", annotations)) if v}
    if deleting:
        metadata["deletionTimestamp"] = rfc3339(NOW)
    document = {"metadata": metadata, "spec": documents.spec(**sections), "status": status or {}}
    return jobs.read(json.loads(json.dumps(document)), "registry.example/trainer:1")


def started(seconds_ago: float = 30, **fields: Any) -> dict[str, Any]:
    """The status of a job whose first attempt began so many seconds ago."""
    time = rfc3339(NOW - seconds_ago)
    plan = job().plan
    assert plan is not None
    return {
        "phase": "Provisioning",
        "startTime": time,
        "attemptStartTime": time,
        "attempt": 1,
        "plan": plan.document(),
        **fields,
    }


def cluster_status(**fields: Any) -> dict[str, Any]:
    return {"name": CLUSTER, "uid": "c", "readyWorkers": 3, "desiredWorkers": 3, **fields}


def submitted(seconds_ago: float = 30, phase: str = "Starting", **fields: Any) -> dict[str, Any]:
    """The status of a job whose driver has been submitted."""
    cluster = cluster_status(submissionId=CLUSTER, podSet=pods.set_digest(all_pods()))
    return started(seconds_ago, phase=phase, cluster=cluster, **fields)


def ray_cluster(**fields: Any) -> RayCluster:
    out = RayCluster(name=CLUSTER, uid="c", owner_uid=UID, created=rfc3339(NOW - 30), conditions=READY)
    return replace(out, **fields)


def pod(role: str, number: int = 0, **fields: Any) -> Pod:
    name = f"{CLUSTER}-head" if role == "head" else f"{CLUSTER}-workers-worker-{number}"
    out = Pod(
        name=name, uid=name, job_uid=UID, role=role, attempt=1, created=rfc3339(NOW - 30), phase="Running", ready=True,
        address="10.0.0.1", auth_mode="token",
    )  # fmt: skip
    return replace(out, **fields)


def all_pods(**fields: Any) -> tuple[Pod, ...]:
    """The head and three workers, ready unless told otherwise."""
    return tuple(pod(role, n, **fields) for role, n in (("head", 0), ("worker", 0), ("worker", 1), ("worker", 2)))


def progress(**changes: Any) -> Progress:
    return Progress.model_validate(documents.progress(CLUSTER, **{"lastProgress": NOW - 1, **copy.deepcopy(changes)}))


def locked(state: str | None = None, **fields: Any) -> Head:
    """A head that demands the token and answers; with a Ray job where a state is given."""
    ray_job = RayJob(state=RayJobState(state), **fields) if state else None
    return Head(lock=Lock.ENFORCED, asked=True, ray_job=ray_job)


def seen(status: dict[str, Any] | None = None, **fields: Any) -> Observation:
    """An observation; `cluster` and `pods` are all well once the job has started, unless told otherwise."""
    given = fields.pop("job", None) or job(status)
    defaults: dict[str, Any] = {}
    if given.started and not given.finished:
        defaults = {"cluster": ray_cluster(), "pods": all_pods()}
    return Observation(job=given, **{**defaults, **fields})


OOM_POD = pod(
    "worker",
    1,
    phase="Failed",
    terminations=(Termination(pod="w", container="ray-worker", exit_code=137, reason="OOMKilled"),),
)
