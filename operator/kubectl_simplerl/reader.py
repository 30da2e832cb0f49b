"""A short pod that reads a file of a job's claim, after the job's own pods are gone."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.outcome import Fault
from simplerl_api import API_VERSION, KIND, names
from simplerl_api.mounts import CHECKPOINT_MOUNT
from simplerl_operator.build.pod import USER
from simplerl_operator.kinds import POD
from simplerl_operator.kubernetes_api import Document

_LIFE_SECONDS = 600
"""Kubernetes ends the pod then, also where this program was killed before it could remove it."""
_POLL_SECONDS = 0.5
LOG_FILE = "driver.log"


def pod(job: Document, file: str, tail: int) -> Document:
    """The pod: it prints the file, as the user that wrote it, and may do nothing else (PodSecurity restricted)."""
    metadata, spec = job["metadata"], job["spec"]
    cluster = spec["cluster"]
    where = cluster.get("head", {})
    folder = names.output_folder(metadata["namespace"], metadata["name"], metadata["uid"])
    path = f"{CHECKPOINT_MOUNT}/{folder}/{file}"
    fixed: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": _LIFE_SECONDS,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "reader",
                "image": job["status"]["plan"]["image"],
                "imagePullPolicy": "IfNotPresent",
                "command": ["tail", f"--lines={'+1' if tail < 0 else tail}", "--", path],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "checkpoints", "mountPath": CHECKPOINT_MOUNT, "readOnly": True}],
            }
        ],
        "volumes": [
            {
                "name": "checkpoints",
                "persistentVolumeClaim": {"claimName": spec["checkpoint"]["claimName"], "readOnly": True},
            }
        ],
    }
    optional = {
        "nodeSelector": where.get("nodeSelector"),
        "tolerations": where.get("tolerations"),
        "imagePullSecrets": cluster.get("imagePullSecrets"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{names.secret(metadata['name'], metadata['uid'])}-reader-",
            "namespace": metadata["namespace"],
            # none of the labels of the job's own pods: the operator does not count it among them
            "labels": {"app.kubernetes.io/name": "simplerl-reader"},
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": KIND, "name": metadata["name"], "uid": metadata["uid"]}
            ],
        },
        "spec": {**fixed, **{name: value for name, value in optional.items() if value}},
    }


@asynccontextmanager
async def ended(
    cluster: Cluster, job: Document, file: str, tail: int, seconds: float
) -> AsyncIterator[tuple[str, bool]]:
    """The name of a pod that has read the file, and whether it could; it is removed when the context closes. Raises
    Fault."""
    made = await cluster.api.create(POD, cluster.namespace, pod(job, file, tail))
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    try:
        yield name, await _succeeds(cluster, name, seconds)
    finally:
        await cluster.api.delete(POD, cluster.namespace, name, uid)


async def _succeeds(cluster: Cluster, name: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        found = await cluster.api.get(POD, cluster.namespace, name)
        if found is None:
            raise Fault(f"reader pod {name} was removed by somebody else")
        status = found.get("status", {})
        if status.get("phase") in ("Succeeded", "Failed"):
            return bool(status["phase"] == "Succeeded")
        if time.monotonic() > until:
            raise Fault(f"timed out after {seconds:.0f} s waiting for reader pod {name}: {_why(status)}")
        await asyncio.sleep(_POLL_SECONDS)


def _why(status: Document) -> str:
    waiting = [s["state"]["waiting"] for s in status.get("containerStatuses", []) if "waiting" in s.get("state", {})]
    unplaced = [c for c in status.get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"]
    for found in (*waiting, *unplaced):
        return ": ".join(filter(None, (found.get("reason"), found.get("message"))))
    return f"it is {status.get('phase', 'Pending')}"
