"""Jobs in queues of a real Kueue, with a real KubeRay; the kubelet and the heads are played."""

import itertools
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.operator import documents, operator_process, programs
from tests.operator.conftest import ROOT
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually
from tests.operator.controllers import Controllers
from tests.operator.heads import Heads
from tests.operator.kuberay import Cluster
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

GROUP = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
_numbers = itertools.count(1)


class Place:
    """A control plane with KubeRay, Kueue and the operator."""

    def __init__(self, plane: ControlPlane, heads: Heads, controllers: Controllers, operator: OperatorProcess) -> None:
        self.plane = plane
        self.heads = heads
        self.controllers = controllers
        self.operator = operator

    def queue(self, *, jobs: int) -> str:
        """A namespace whose LocalQueue team-a has quota for so many tiny jobs; a job of higher priority may preempt."""
        namespace = self.plane.namespace(f"k{next(_numbers)}")
        # four pods of a tiny job ask for 200 millicores each
        resources = [{"name": "cpu", "nominalQuota": f"{jobs * 800}m"}, {"name": "memory", "nominalQuota": "1Ti"}]
        self.apply("ResourceFlavor", "default", None, spec={})
        self.apply("ClusterQueue", namespace, None, spec={
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "default", "resources": resources}]}
            ],
        })  # fmt: skip
        self.apply("LocalQueue", "team-a", namespace, spec={"clusterQueue": namespace})
        self.apply("WorkloadPriorityClass", "high", None, value=1000, description="")
        return namespace

    def apply(self, kind: str, name: str, namespace: str | None, **fields: Any) -> None:
        where = f"/namespaces/{namespace}" if namespace else ""
        plural = {"WorkloadPriorityClass": "workloadpriorityclasses"}.get(kind, kind.lower() + "s")
        document = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **fields}
        self.plane.apply(f"{GROUP}{where}/{plural}/{name}", document)

    def job(self, name: str, namespace: str, **labels: str) -> "QueuedLife":
        return QueuedLife(self.plane, self.heads, namespace, name, labels={QUEUE: "team-a"} | labels)

    def workloads(self, namespace: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.plane.request("GET", f"{GROUP}/namespaces/{namespace}/workloads")["items"]
        return found


class QueuedLife(Life):
    """A job whose pods KubeRay makes."""

    def cluster(self) -> "RealCluster":
        return RealCluster(self.plane, self.namespace, self.cluster_name)

    def resumed(self, attempt: int) -> None:
        """Until the driver of a later attempt in the same RayCluster has been submitted."""
        self.head.progress = documents.progress(f"{self.cluster_name}-r{attempt}")
        self.cluster().all_ready()
        self.reaches("Starting", "DriverStarting")


class RealCluster(Cluster):
    """A RayCluster whose pods KubeRay makes."""

    def pods(self) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=ray.io/cluster={self.name}"
        found: list[dict[str, Any]] = self.plane.request("GET", path)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def all_ready(self) -> list[str]:
        pods = eventually(f"4 pods of {self.name}", lambda: len(found := self.pods()) == 4 and found)
        names = [pod["metadata"]["name"] for pod in pods]
        for name in names:
            self.ready(name)
        return names


@pytest.fixture(scope="module")
def place(heads: Heads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Everything of its own: Kueue's webhooks and KubeRay would meddle with the jobs of other tests."""
    plane = ControlPlane(tmp_path_factory.mktemp("queues"), programs.path("etcd"), programs.path("kube-apiserver"))
    controllers = Controllers(plane, plane.folder)
    operator = None
    try:
        plane.start()
        subprocess.run(
            [str(programs.path("kubectl")), f"--kubeconfig={plane.kubeconfig(ADMIN_TOKEN)}", "apply", "--server-side",
             "-f", str(ROOT / "crds/simplerljobs.yaml")],
            check=True, timeout=60,
        )  # fmt: skip
        controllers.kuberay()
        controllers.install_kueue()
        controllers.garbage_collector()
        operator_process.grant(plane)
        address = f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}"
        operator = OperatorProcess(plane, tmp_path_factory.mktemp("operator"), address)
        operator.start()
        yield Place(plane, heads, controllers, operator)
    finally:
        if operator is not None:
            operator.stop()
        controllers.stop_all()
        plane.stop()


def test_quota_preemption_and_a_second_admission(place: Place) -> None:
    """Complaint 15 (kueue#1146): what was preempted goes on when it is admitted again."""
    namespace = place.queue(jobs=1)
    first = place.job("first", namespace)
    first.training()
    assert first.status["admittedTime"]
    first.head.say(state="Training", step=7)
    eventually("step 7", lambda: first.status["training"]["step"] == 7)
    uid = first.cluster().document["metadata"]["uid"]

    second = place.job("second", namespace)
    second.reaches("Queued", "Queued")
    message = eventually("Kueue's decision", lambda: decided(second))
    assert message.startswith("waiting in LocalQueue team-a: couldn't assign flavors to pod set ")
    assert "insufficient unused quota for cpu in flavor default" in message
    assert "admittedTime" not in second.status
    assert second.cluster().pods() == []

    urgent = place.job("urgent", namespace, **{PRIORITY: "high"})
    status = first.reaches("Queued", "Preempted")
    assert first.condition("Ready")["message"].startswith(
        "Kueue took the pods back into LocalQueue team-a (Preempted): Preempted to accommodate a workload"
    )
    assert status["training"]["step"] == 7
    assert "completionTime" not in status
    assert first.cluster().document["metadata"]["uid"] == uid
    eventually("the pods to be gone", lambda: first.cluster().pods() == [])
    first.head.progress = None  # the driver went with its pods, and what Ray knew of it
    first.head.jobs.clear()
    urgent.training()
    urgent.head.say(state="Succeeded", step=60)
    urgent.reaches("Succeeded")

    # of two that wait, the one that came first is admitted; its RayCluster is the same, its driver a new one
    first.resumed(2)
    assert first.cluster().document["metadata"]["uid"] == uid
    assert [s["submission_id"] for s in first.head.submissions] == [first.cluster_name, f"{first.cluster_name}-r2"]
    status = first.status
    assert (status["attempt"], status.get("failures", 0), status["interruptions"]) == (2, 0, 1)
    ended = status["attempts"][-1]
    assert (ended["number"], ended["reason"], ended["lastStep"]) == (1, "Preempted", 7)
    first.head.say(state="Training", step=8)
    first.reaches("Training")
    assert second.status["phase"] == "Queued"
    first.head.say(state="Succeeded", step=60)
    first.reaches("Succeeded")
    second.training()


def test_an_eviction_that_an_operator_slept_through_is_not_charged(place: Place) -> None:
    namespace = place.queue(jobs=1)
    life = place.job("alone", namespace)
    life.training()
    assert life.status["cluster"]["admission"]
    (workload,) = place.workloads(namespace)
    path = f"{GROUP}/namespaces/{namespace}/workloads/{workload['metadata']['name']}"
    pods = {pod["metadata"]["uid"] for pod in life.cluster().pods()}
    place.operator.kill()
    place.plane.merge(path, {"spec": {"active": False}})
    eventually("the pods to be gone", lambda: life.cluster().pods() == [], 30)
    place.plane.merge(path, {"spec": {"active": True}})
    others = eventually("other pods", lambda: len(found := life.cluster().pods()) == 4 and found, 30)
    assert not pods & {pod["metadata"]["uid"] for pod in others}
    life.head.progress = None
    life.head.jobs.clear()
    place.operator.start()
    status = life.reaches("Provisioning")
    assert (status["attempt"], status.get("failures", 0), status["interruptions"]) == (2, 0, 1)
    assert status["attempts"][-1]["reason"] == "Evicted"
    life.resumed(2)


def test_a_job_that_is_over_or_deleted_holds_no_quota(place: Place) -> None:
    """Quota is free once the pods are: a RayCluster is never finished for Kueue, so it is deleted."""
    namespace = place.queue(jobs=1)
    running = place.job("running", namespace)
    running.training()
    queued = place.job("queued", namespace)
    queued.reaches("Queued", "Queued")
    last = place.job("last", namespace)
    place.plane.request("DELETE", queued.path)
    eventually("the queued job's RayCluster to go", lambda: queued_is_gone(place, queued))
    last.reaches("Queued", "Queued")
    place.plane.request("DELETE", running.path)
    last.training()
    last.head.say(state="Failed", failure={"reason": "NonFinite", "message": "the loss is not finite"})
    last.reaches("Failed")
    eventually("all Workloads to go", lambda: place.workloads(namespace) == [])


def decided(life: Life) -> str:
    """What a job says of its wait, once Kueue has said something."""
    message = str(life.condition("Ready")["message"])
    return "" if message.endswith("Kueue has not decided yet") else message


def queued_is_gone(place: Place, life: Life) -> bool:
    clusters = place.plane.request("GET", f"/apis/ray.io/v1/namespaces/{life.namespace}/rayclusters")["items"]
    return life.cluster_name not in [cluster["metadata"]["name"] for cluster in clusters]


def test_a_queue_that_does_not_exist_is_named(place: Place) -> None:
    namespace = place.queue(jobs=1)
    life = place.job("lost", namespace, **{QUEUE: "team-z"})
    life.reaches("Queued", "Queued")
    eventually("Kueue's words", lambda: "team-z doesn't exist" in life.condition("Ready")["message"])


def test_a_job_without_a_queue_does_not_wait(place: Place) -> None:
    namespace = place.queue(jobs=0)
    life = QueuedLife(place.plane, place.heads, namespace, "free")
    life.training()
    assert "admittedTime" not in life.status
    assert place.workloads(namespace) == []


def test_in_a_queue_pods_of_engines_stay(place: Place) -> None:
    namespace = place.queue(jobs=1)
    rollout = {**documents.TINY["rollout"], "elastic": {"minEngines": 1, "maxEngines": 1}}
    cluster = {**documents.TINY["cluster"], "gpus": 3}
    labels = {QUEUE: "team-a"}
    life = QueuedLife(place.plane, place.heads, namespace, "still", labels=labels, rollout=rollout, cluster=cluster)
    life.training()
    life.head.say(step=1, engines={"current": 1, "desired": 1, "idle": ["127.0.0.1"]})
    eventually("the condition", lambda: life.condition("EnginesScaled").get("reason") == "QueueManaged")
    (group,) = life.cluster().document["spec"]["workerGroupSpecs"]
    assert (group["groupName"], group["replicas"]) == ("workers", 3)


def test_a_worker_whose_ray_was_too_slow_is_made_anew_by_kuberay(place: Place) -> None:
    namespace = place.plane.namespace(f"k{next(_numbers)}")
    life = QueuedLife(place.plane, place.heads, namespace, "slow")
    cluster = life.cluster()
    pods = eventually("4 pods", lambda: len(found := cluster.pods()) == 4 and found)
    (one, *_) = (pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "worker")
    cluster.end(one, 1, "Error", "Exception: The current node timed out during startup.")
    eventually(
        "another", lambda: one not in (names := [p["metadata"]["name"] for p in cluster.pods()]) and len(names) == 4
    )
    life.training()
    status = life.status
    assert (status["attempt"], status.get("failures", 0), status.get("attempts", [])) == (1, 0, [])


def test_kueue_down_is_said(place: Place) -> None:
    """No RayCluster slips past the queue: its creation is refused until Kueue is there again (complaint 13)."""
    namespace = place.queue(jobs=1)
    place.controllers.stop("kueue")
    try:
        life = place.job("early", namespace)
        life.reaches("Pending", "ClusterRejected")
        assert 'failed calling webhook "mraycluster.kb.io"' in life.condition("Ready")["message"]
    finally:
        place.controllers.kueue()
    life.training()
