"""Fleets of jobs on nodes that run nothing (kwok): `python -m benchmarks.operator.fleet --jobs 100`.

In one run, one after the other: so many bare RayClusters, RayJobs (InteractiveMode) and SimpleRLJobs of the same shape,
created at once, until all their pods are ready and the status of each says so; then all jobs train, pods of some are
killed and the operator is restarted. Prints a table; method and last figures in benchmarks/README.md.
"""

import argparse
import copy
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.operator import measure
from benchmarks.operator.plane import KUBERAY_WORKERS, WRITERS, Fleet, running
from tests.operator import documents
from tests.operator.control_plane import OPERATOR_USER

from simplerl_operator.build import ray_cluster
from simplerl_operator.observe import job as jobs

_LIMIT_SECONDS = 1800.0
_POLL_SECONDS = 0.5
_BACKGROUND = {"propagationPolicy": "Background"}
IMAGE = "registry.example/trainer:1"


def job(name: str, namespace: str) -> dict[str, Any]:
    """A job of one worker pod."""
    return documents.job(name, namespace, cluster={"gpus": 1, "gpusPerNode": 1, "cpuOnly": True}, placement=None)


def bare(name: str, namespace: str) -> dict[str, Any]:
    """The RayCluster that the operator makes of the job, without what ties it to one."""
    document = job(name, namespace)
    metadata = {**document["metadata"], "uid": "00000000-0000", "generation": 1, "resourceVersion": "1"}
    made = copy.deepcopy(ray_cluster.ray_cluster(jobs.read({**document, "metadata": metadata}, IMAGE)))
    made["metadata"] = {"name": name, "namespace": namespace}
    made["spec"]["authOptions"] = {"mode": "token"}
    templates = [made["spec"]["headGroupSpec"]["template"], made["spec"]["workerGroupSpecs"][0]["template"]]
    for template in templates:
        template["metadata"].pop("labels")
        template["spec"]["volumes"] = [v for v in template["spec"]["volumes"] if "configMap" not in v]
        for container in template["spec"]["containers"]:
            container["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] != "run"]
    return made


def ray_job(name: str, namespace: str) -> dict[str, Any]:
    """The same RayCluster under a RayJob whose user submits."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"submissionMode": "InteractiveMode", "rayClusterSpec": bare(name, namespace)["spec"]},
    }


def cluster_ready(document: Mapping[str, Any]) -> bool:
    conditions = document.get("status", {}).get("conditions", [])
    return any(c["type"] == "RayClusterProvisioned" and c["status"] == "True" for c in conditions)


def ray_job_ready(document: Mapping[str, Any]) -> bool:
    return document.get("status", {}).get("jobDeploymentStatus") == "Waiting"


def job_ready(document: Mapping[str, Any]) -> bool:
    status = document.get("status", {})
    ready = any(c["type"] == "ClusterReady" and c["status"] == "True" for c in status.get("conditions", []))
    return bool(ready or status.get("phase") == "Succeeded")


KINDS: Mapping[str, tuple[str, Callable[[str, str], dict[str, Any]], Callable[[Mapping[str, Any]], bool]]] = {
    "bare RayClusters": ("ray.io/v1|rayclusters", bare, cluster_ready),
    "RayJobs (InteractiveMode)": ("ray.io/v1|rayjobs", ray_job, ray_job_ready),
    "SimpleRLJobs": ("simplerl.io/v1alpha1|simplerljobs", job, job_ready),
}


def create_and_wait(fleet: Fleet, kind: str, count: int, namespace: str) -> float:
    """Seconds from the first creation until all are ready and say so."""
    group, make, ready = KINDS[kind]
    api, plural = group.split("|")
    path = f"/apis/{api}/namespaces/{namespace}/{plural}"
    started = time.monotonic()
    fleet.create(path, [make(f"job-{i}", namespace) for i in range(count)])
    wait(fleet, path, ready, count, f"{count} {kind} to be ready")
    return time.monotonic() - started


def wait(fleet: Fleet, path: str, good: Callable[[Mapping[str, Any]], bool], count: int, what: str) -> None:
    """Until so many of the objects at a path are good."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    while True:
        # from the watch cache: a quorum read of a thousand objects would be most of what is measured
        found = fleet.plane.request("GET", path + "?resourceVersion=0")["items"]
        number = sum(map(good, found))
        if number >= count:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {_LIMIT_SECONDS:.0f} s waiting for {what}: {number} of {count}")
        time.sleep(_POLL_SECONDS)


def delete(fleet: Fleet, kind: str, namespace: str) -> None:
    """Removes the objects and waits until no pod is left."""
    api, plural = KINDS[kind][0].split("|")
    path = f"/apis/{api}/namespaces/{namespace}/{plural}"
    names = [document["metadata"]["name"] for document in fleet.plane.request("GET", path)["items"]]
    # one by one: as one request of a whole collection it would outlast any time-out on a busy machine
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda name: fleet.plane.request("DELETE", f"{path}/{name}", _BACKGROUND), names))
    deadline = time.monotonic() + _LIMIT_SECONDS
    while fleet.plane.request("GET", f"/api/v1/namespaces/{namespace}/pods?limit=1")["items"]:
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {_LIMIT_SECONDS:.0f} s waiting for the pods of {kind} to go")
        time.sleep(_POLL_SECONDS)


def writes(fleet: Fleet, namespace: str, since: int) -> dict[str, int]:
    """The operator's writes in a namespace by verb and kind; rehearsals store nothing and are counted apart."""
    found: dict[str, int] = {}
    for entry in fleet.plane.writes(OPERATOR_USER, namespace, since):
        reference = entry["objectRef"]
        what = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
        name = "rehearsals" if "dryRun=All" in entry["requestURI"] else f"{entry['verb']} {what}"
        found[name] = found.get(name, 0) + 1
    return found


def training(document: Mapping[str, Any]) -> bool:
    return bool(document.get("status", {}).get("phase") == "Training")


def latencies(fleet: Fleet, namespace: str, count: int) -> list[float]:
    """Seconds from a worker's death to the first new status of its job, for so many jobs one after the other."""
    path = f"/apis/simplerl.io/v1alpha1/namespaces/{namespace}/simplerljobs"
    seen: dict[str, float] = {}
    watching = measure.Watch(fleet.plane, path, lambda document: not training(document), seen)
    watching.start()
    found = []
    try:
        for i in range(count):
            pods = f"/api/v1/namespaces/{namespace}/pods"
            selector = f"?labelSelector=simplerl.io%2Fjob%3Djob-{i},simplerl.io%2Frole%3Dworker"
            (pod,) = fleet.plane.request("GET", pods + selector)["items"]
            name = pod["metadata"]["name"]
            state = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
            container = {**pod["status"]["containerStatuses"][0], "ready": False, "state": state}
            dead = {"status": {"phase": "Failed", "containerStatuses": [container]}}
            at = time.monotonic()
            fleet.plane.merge(f"{pods}/{name}/status", dead)
            found.append(watching.wait_for(f"job-{i}", 60) - at)
    finally:
        watching.stop()
    return found


def restart(fleet: Fleet, namespace: str, count: int) -> tuple[float, dict[str, int]]:
    """Kills the operator and starts it again: seconds until it has looked at every job and its queue is empty, and the
    writes that came meanwhile, figures of new steps among them."""
    operator = fleet.operator
    assert operator is not None
    operator.kill()
    since = fleet.plane.audit_length()
    started = time.monotonic()
    operator.start()
    deadline = started + _LIMIT_SECONDS
    while True:
        figures = measure.series(operator.get("/metrics")[1])
        looked = sum(value for name, value in figures.items() if name.startswith("simplerl_jobs{"))
        if looked >= count and figures["simplerl_queue_depth"] == 0:
            break
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out: the operator has looked at {looked} of {count} jobs")
        time.sleep(0.1)
    return time.monotonic() - started, writes(fleet, namespace, since)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--running-seconds", type=float, default=60.0, help="how long the jobs train undisturbed")
    parser.add_argument("--killed", type=int, default=100, help="jobs of which a worker is killed")
    parser.add_argument(
        "--starting-seconds", type=float, default=20.0, help="how long each driver takes to load its model"
    )
    parser.add_argument(
        "--kuberay-workers",
        type=int,
        default=KUBERAY_WORKERS,
        help="objects of a kind that KubeRay handles at once; by its chart 1",
    )
    parser.add_argument("--step-seconds", type=float, default=60.0, help="how long each job's steps take")
    given = parser.parse_args()
    folders = tempfile.TemporaryDirectory(prefix="fleet-")
    with folders as folder, running(Path(folder), nodes=8, kuberay_workers=given.kuberay_workers) as fleet:
        fleet.start_operator(step_seconds=given.step_seconds, steps=1000, starting_seconds=given.starting_seconds)
        result = measured(fleet, given.jobs, given.kinds, given.running_seconds, given.killed)
    result |= {"kuberay_workers": given.kuberay_workers, "step_seconds": given.step_seconds}
    print(json.dumps(result, indent=1))


def measured(fleet: Fleet, count: int, kinds: Sequence[str], running_seconds: float, killed: int) -> dict[str, Any]:
    """All figures of one run."""
    operator = fleet.operator
    assert operator is not None
    usage = measure.Usage(operator.pid)
    out: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "cores": os.cpu_count(), "machine": platform.machine(),
        "load": os.getloadavg()[0], "jobs": count, "idle_memory_mb": usage.peak_mb(), "seconds": {},
    }  # fmt: skip
    for kind in kinds:
        namespace, since, cpu = fleet.namespace(), fleet.plane.audit_length(), usage.cpu_seconds()
        out["seconds"][kind] = round(create_and_wait(fleet, kind, count, namespace), 1)
        if kind != "SimpleRLJobs":
            delete(fleet, kind, namespace)
            continue
        out["operator_cpu_seconds"] = round(usage.cpu_seconds() - cpu, 1)
        path = f"/apis/simplerl.io/v1alpha1/namespaces/{namespace}/simplerljobs"
        wait(fleet, path, training, count, "all jobs to train")
        out["writes_until_training"] = writes(fleet, namespace, since)
        since, cpu, at = fleet.plane.audit_length(), usage.cpu_seconds(), time.monotonic()
        time.sleep(running_seconds)
        out["running_cpu_share"] = round((usage.cpu_seconds() - cpu) / (time.monotonic() - at), 3)
        out["running_writes"] = writes(fleet, namespace, since)
        out["peak_memory_mb"] = usage.peak_mb()
        seconds, meanwhile = restart(fleet, namespace, count)
        out["restart"] = {"seconds": round(seconds, 1), "writes": meanwhile}
        out["restart"]["peak_memory_mb"] = measure.Usage(operator.pid).peak_mb()
        if killed:
            found = sorted(latencies(fleet, namespace, min(killed, count)))
            out["latency_seconds"] = {"median": measure.quantile(found, 0.5), "p99": measure.quantile(found, 0.99)}
    return out


if __name__ == "__main__":
    main()
