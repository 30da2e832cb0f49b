"""A job's life as a test leads it: apply, pods ready, driver started."""

from typing import Any

from tests.operator import documents
from tests.operator.control_plane import ControlPlane, eventually
from tests.operator.heads import Heads, StandIn
from tests.operator.kuberay import Cluster

JOBS = "/apis/simplerl.io/v1alpha1/namespaces"


class Life:
    """One job."""

    def __init__(
        self,
        plane: ControlPlane,
        heads: Heads,
        namespace: str,
        name: str = "tiny",
        *,
        labels: dict[str, str] | None = None,
        **sections: Any,
    ) -> None:
        self.plane = plane
        self.heads = heads
        self.namespace = namespace
        self.name = name
        self.path = f"{JOBS}/{namespace}/simplerljobs/{name}"
        document = documents.job(name, namespace, **sections)
        document["metadata"]["labels"] = labels or {}
        self.created = plane.apply(self.path, document)
        self.uid = self.created["metadata"]["uid"]

    attempt = 1
    """The attempt whose RayCluster the test plays."""

    @property
    def cluster_name(self) -> str:
        return f"{self.name}-{self.uid.replace('-', '')[:5]}-{self.attempt}"

    @property
    def head(self) -> StandIn:
        return self.heads.head(self.namespace, self.cluster_name)

    @property
    def status(self) -> dict[str, Any]:
        document = self.plane.find(self.path)
        return (document or {}).get("status", {})

    def condition(self, kind: str) -> dict[str, Any]:
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    def cluster(self) -> Cluster:
        return Cluster(self.plane, self.namespace, self.cluster_name)

    def reaches(self, phase: str, reason: str | None = None, seconds: float = 20.0) -> dict[str, Any]:
        """Waits until the job stands in a phase for a reason; its status then."""

        def there() -> dict[str, Any] | None:
            status = self.status
            ready = next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {})
            return status if status.get("phase") == phase and reason in (None, ready.get("reason")) else None

        try:
            return eventually(f"{self.name} to be {phase} {reason or ''}", there, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; status: {self.status}") from None

    def submitted(self, attempt: int = 1, cluster: Cluster | None = None) -> Cluster:
        """Until the driver of an attempt with a RayCluster of its own has been submitted; it says nothing yet."""
        self.attempt = attempt
        cluster = cluster or self.cluster()
        self.head.progress = documents.progress(self.cluster_name)
        cluster.all_ready()
        self.reaches("Starting", "DriverStarting")
        return cluster

    def training(self, attempt: int = 1, cluster: Cluster | None = None) -> Cluster:
        """Until the driver trains."""
        cluster = self.submitted(attempt, cluster)
        self.head.say(state="Training", step=0, evaluations=[documents.evaluation("held-out", 0.34, 0.34, 0)])
        self.reaches("Training", "Training")
        return cluster

    def loses_its_heads_node(self) -> Cluster:
        """A job that trained until the node of its head died: the pod is deleted, and nobody there ends it."""
        node = f"node-{self.namespace}"
        self.plane.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
        cluster = self.cluster()
        template = cluster.document["spec"]["headGroupSpec"]["template"]
        pinned = {**template, "spec": {**template["spec"], "nodeName": node, "terminationGracePeriodSeconds": 1}}
        cluster.document["spec"]["headGroupSpec"]["template"] = pinned
        self.training(cluster=cluster)
        self.plane.request("DELETE", cluster.pod_path(f"{cluster.name}-head"))
        self.reaches("Recovering", "HeadLost")
        for worker in range(3):
            cluster.delete_pod(f"{cluster.name}-workers-worker-{worker}")
        return cluster

    def change(self, **sections: Any) -> None:
        self.plane.merge(self.path, {"spec": sections})

    def events(self) -> list[dict[str, Any]]:
        found = self.plane.request("GET", f"/api/v1/namespaces/{self.namespace}/events")["items"]
        return [e for e in found if e["involvedObject"].get("uid") == self.uid]
