"""The part of KubeRay and kubelet, played by the test: pods made of a RayCluster's templates, and their statuses."""

import copy
import time
from typing import Any

from tests.operator.control_plane import ControlPlane, eventually

GROUPS = "/apis/ray.io/v1/namespaces"


class Cluster:
    """One RayCluster that the operator has made."""

    def __init__(self, plane: ControlPlane, namespace: str, name: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.name = name
        self.document = eventually(f"RayCluster {name}", self.find)

    @property
    def path(self) -> str:
        return f"{GROUPS}/{self.namespace}/rayclusters/{self.name}"

    def find(self) -> Any:
        return self.plane.find(self.path)

    def pod_path(self, pod: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{pod}"

    def make_pods(self, *, auth: bool = True) -> list[str]:
        """The head and all workers, as KubeRay makes them; pending."""
        spec = self.document["spec"]
        names = [self.make_pod("head", spec["headGroupSpec"]["template"], auth=auth)]
        for group in spec["workerGroupSpecs"]:
            for i in range(group["replicas"]):
                names.append(self.make_pod(f"{group['groupName']}-worker-{i}", group["template"], auth=auth))
        return names

    def make_pod(self, suffix: str, template: dict[str, Any], *, auth: bool = True) -> str:
        pod = copy.deepcopy(template)
        name = f"{self.name}-{suffix}"
        pod["metadata"] |= {"name": name, "namespace": self.namespace}
        pod["metadata"]["labels"]["ray.io/group"] = suffix.partition("-")[0]
        if auth:
            pod["spec"]["containers"][0]["env"].append({"name": "RAY_AUTH_MODE", "value": "token"})
        self.plane.request(
            "POST", f"/api/v1/namespaces/{self.namespace}/pods", {"apiVersion": "v1", "kind": "Pod", **pod}
        )
        return name

    def set_pod(self, pod: str, **status: Any) -> None:
        self.plane.merge(self.pod_path(pod) + "/status", {"status": status})

    def ready(self, pod: str, address: str = "127.0.0.1") -> None:
        container = self.plane.find(self.pod_path(pod))["spec"]["containers"][0]
        self.set_pod(
            pod,
            phase="Running",
            podIP=address,
            conditions=[condition("PodScheduled", "True"), condition("Ready", "True")],
            containerStatuses=[container_status(container, {"running": {"startedAt": now()}}, ready=True)],
        )

    def unschedulable(self, pod: str, message: str) -> None:
        self.set_pod(pod, phase="Pending", conditions=[condition("PodScheduled", "False", "Unschedulable", message)])

    def waiting(self, pod: str, reason: str, message: str) -> None:
        container = self.plane.find(self.pod_path(pod))["spec"]["containers"][0]
        state = {"waiting": {"reason": reason, "message": message}}
        self.set_pod(
            pod,
            phase="Pending",
            conditions=[condition("PodScheduled", "True")],
            containerStatuses=[container_status(container, state)],
        )

    def end(self, pod: str, exit_code: int, reason: str, message: str = "") -> None:
        container = self.plane.find(self.pod_path(pod))["spec"]["containers"][0]
        state = {"terminated": {"exitCode": exit_code, "reason": reason, "message": message}}
        self.set_pod(
            pod,
            phase="Failed",
            conditions=[condition("PodScheduled", "True"), condition("Ready", "False")],
            containerStatuses=[container_status(container, state)],
        )

    def take(self, pod: str, reason: str, message: str) -> None:
        """What the cluster does to a pod that it preempts or evicts: the condition first, then the end."""
        container = self.plane.find(self.pod_path(pod))["spec"]["containers"][0]
        state = {"terminated": {"exitCode": 143, "reason": "Error"}}
        self.set_pod(
            pod,
            phase="Failed",
            conditions=[
                condition("PodScheduled", "True"),
                condition("Ready", "False"),
                condition("DisruptionTarget", "True", reason, message),
            ],
            containerStatuses=[container_status(container, state)],
        )

    def delete_pods(self) -> None:
        """What KubeRay and kubelet do when the RayCluster is gone."""
        for name in [f"{self.name}-head", *(f"{self.name}-workers-worker-{i}" for i in range(3))]:
            self.delete_pod(name)

    def delete_pod(self, pod: str) -> None:
        self.plane.remove(self.pod_path(pod))

    def head_ready(self, status: str = "True", reason: str = "HeadPodRunningAndReady") -> None:
        self.plane.merge(
            self.path + "/status",
            {
                "status": {
                    "state": "ready",
                    "head": {"serviceName": f"{self.name}-head-svc"},
                    "conditions": [condition("HeadPodReady", status, reason)],
                }
            },
        )

    def all_ready(self) -> list[str]:
        names = self.make_pods()
        self.head_ready()
        for name in names:
            self.ready(name)
        return names


def condition(kind: str, status: str, reason: str = "Because", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now()}


def container_status(container: dict[str, Any], state: dict[str, Any], *, ready: bool = False) -> dict[str, Any]:
    image = container["image"]
    return {"name": container["name"], "image": image, "imageID": "", "ready": ready, "restartCount": 0, "state": state}


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
