"""The RayCluster of an attempt (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html)."""

from typing import Any

from simplerl_api import names, quantity
from simplerl_operator.build import metadata, pod, scheduling
from simplerl_operator.observe.job import Job

RAY_VERSION = "2.60.0"
WORKERS = "workers"


def ray_cluster(job: Job) -> dict[str, Any]:
    """One head without CPUs or GPUs for tasks, and as many workers as the plan has nodes."""
    assert job.spec is not None
    assert job.plan is not None
    store = str(int(quantity.number(job.plan.shm_size) / 2))  # the other half is for the ranks' and engines' own use
    slots = str(job.plan.gpus_per_node)
    worker_start = {"object-store-memory": store, "num-gpus": "0" if job.spec.cluster.cpu_only else slots}
    if job.spec.cluster.cpu_only:
        worker_start["num-cpus"] = slots  # a slot is one CPU of Ray's, whatever the container may use
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
            "workerGroupSpecs": [
                {
                    "groupName": WORKERS,
                    "replicas": job.plan.nodes,
                    "minReplicas": job.plan.nodes,
                    "maxReplicas": job.plan.nodes,
                    "rayStartParams": worker_start,
                    "template": pod.worker(job),
                }
            ],
        },
    }
