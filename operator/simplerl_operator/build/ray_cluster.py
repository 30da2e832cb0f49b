"""The RayCluster of an attempt (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html)."""

import json
from typing import Any

from simplerl_api import names, quantity
from simplerl_api.elastic import ENGINE_NODE, RANK_NODE
from simplerl_operator.build import metadata, pod, scheduling
from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job

RAY_VERSION = "2.60.0"
WORKERS = "workers"


def ray_cluster(job: Job) -> dict[str, Any]:
    """One head without CPUs or GPUs for tasks, and as many workers as the plan has nodes; those of engines that come
    and go are a group of their own."""
    assert job.spec is not None
    assert job.plan is not None
    store = str(int(quantity.number(job.plan.shm_size) / 2))  # the other half is for the ranks' and engines' own use
    meta = metadata.child(job, job.cluster_name, scheduling.cluster_labels(job) | metadata.labels(job))
    meta["annotations"] = {
        **scheduling.cluster_annotations(job),
        # a head that came back would be empty, and its job gone
        "ray.io/disable-provisioned-head-restart": "true",
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": meta,
        "spec": {
            "rayVersion": RAY_VERSION,
            "authOptions": {"mode": "token", "secretName": names.secret(job.name, job.uid)},
            "headGroupSpec": {
                "rayStartParams": {
                    "dashboard-host": "0.0.0.0",
                    "num-cpus": "0",
                    "num-gpus": "0",  # a head without a GPU limit sees all GPUs of its node (kuberay#2098)
                    "object-store-memory": store,
                },
                "template": pod.head(job),
            },
            "workerGroupSpecs": _groups(job, store),
        },
    }


def _groups(job: Job, store: str) -> list[dict[str, Any]]:
    assert job.spec is not None
    plan = job.plan
    assert plan is not None
    slots = str(plan.gpus_per_node)
    start = {"object-store-memory": store, "num-gpus": "0" if job.spec.cluster.cpu_only else slots}
    if job.spec.cluster.cpu_only:
        start["num-cpus"] = slots  # a slot is one CPU of Ray's, whatever the container may use
    if not job.elastic:
        return [_group(WORKERS, (plan.nodes, plan.nodes, plan.nodes), start, pod.worker(job))]
    ranks = plan.training_nodes
    wanted = plan.nodes_for(job.wanted_engines or plan.engines)
    engines = tuple(n - ranks for n in (plan.least_nodes, wanted, plan.nodes))
    return [
        _group(WORKERS, (ranks, ranks, ranks), start | _marked(RANK_NODE), pod.worker(job)),
        _group(pods.ENGINES, engines, start | _marked(ENGINE_NODE), pod.worker(job, passing=True)),
    ]


def _group(name: str, replicas: tuple[int, ...], start: dict[str, str], template: dict[str, Any]) -> dict[str, Any]:
    least, wanted, most = replicas
    return {
        "groupName": name,
        "replicas": wanted,
        "minReplicas": least,
        "maxReplicas": most,
        "rayStartParams": start,
        "template": template,
    }


def _marked(resource: str) -> dict[str, str]:
    """The resource of Ray that a node bears; KubeRay puts it into a shell's command as it stands."""
    return {"resources": f"'{json.dumps({resource: 1})}'"}
