"""Pods of engines that come and go in a real RayCluster: KubeRay makes and deletes them; kubelet, Ray and the driver
are played."""

import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes.aio import client, config
from tests.operator import documents, operator_process, programs
from tests.operator.conftest import ROOT
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually
from tests.operator.controllers import Controllers
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess
from tests.operator.test_kueue import RealCluster

from simplerl_operator.apply import children
from simplerl_operator.decide.decision import EnginePods
from simplerl_operator.kubernetes_api import KubernetesApi, Refused
from simplerl_operator.observe.job import read
from simplerl_operator.observe.ray_cluster import Group

ELASTIC: dict[str, Any] = {
    "rollout": {**documents.TINY["rollout"], "elastic": {"minEngines": 1, "maxEngines": 3}},
    "placement": {"disaggregated": {"trainingGpus": 1}},
    "cluster": {**documents.TINY["cluster"], "gpus": 4},
    "recovery": {**documents.TINY["recovery"], "backoffLimit": 1},
}


class ElasticLife(Life):
    """A job with one rank and one to three engines, each of them in a pod of its own."""

    def cluster(self) -> RealCluster:
        return RealCluster(self.plane, self.namespace, self.cluster_name)

    def pods(self, group: str) -> dict[str, dict[str, Any]]:
        """The pods of a group, by name."""
        found = self.cluster().pods()
        return {p["metadata"]["name"]: p for p in found if p["metadata"]["labels"]["ray.io/group"] == group}

    def engines(self, number: int) -> list[str]:
        """The names of its pods of engines, once there are so many."""
        return sorted(eventually(f"{number} pods", lambda: len(p := self.pods("engines")) == number and p))

    def replicas(self) -> int:
        return int(self.cluster().find()["spec"]["workerGroupSpecs"][1]["replicas"])

    def says(self, reason: str, message: str) -> None:
        def told() -> tuple[str, str]:
            found = self.condition("EnginesScaled")
            return found.get("reason", ""), found.get("message", "")

        eventually(f"{reason}: {message}; not {told()}", lambda: told() == (reason, message))


@pytest.fixture(scope="module")
def lives(heads: Heads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Heads]]:
    """A control plane with KubeRay and the operator."""
    plane = ControlPlane(tmp_path_factory.mktemp("elastic"), programs.path("etcd"), programs.path("kube-apiserver"))
    controllers, operator = Controllers(plane, plane.folder), None
    try:
        plane.start()
        kubectl = [str(programs.path("kubectl")), f"--kubeconfig={plane.kubeconfig(ADMIN_TOKEN)}"]
        crd = str(ROOT / "crds/simplerljobs.yaml")
        subprocess.run([*kubectl, "apply", "--server-side", "-f", crd], check=True, timeout=60)
        controllers.kuberay()
        operator_process.grant(plane)
        address = f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}"
        operator = OperatorProcess(plane, tmp_path_factory.mktemp("operator"), address)
        operator.start()
        yield plane, heads
    finally:
        if operator is not None:
            operator.stop()
        controllers.stop_all()
        plane.stop()


def marks(pod: dict[str, Any]) -> list[str]:
    """The resources that Ray is told of, as the shell hands them to it."""
    container = pod["spec"]["containers"][0]
    (script,) = container["args"]
    words = shlex.split(script)
    return [word.removeprefix("--resources=") for word in words if word.startswith("--resources=")]


def test_pods_of_engines_come_and_go_and_the_attempt_goes_on(lives: tuple[ControlPlane, Heads]) -> None:
    plane, heads = lives
    life = ElasticLife(plane, heads, plane.namespace("elastic"), **ELASTIC)
    cluster = life.cluster()
    first, second, third = life.engines(3)
    (ranks,) = eventually("the pod of ranks", lambda: life.pods("workers"))
    (head,) = eventually("the head", lambda: life.pods("headgroup"))
    assert marks(life.pods("engines")[first]) == ['{"simplerl_engines": 1}']
    assert marks(life.pods("workers")[ranks]) == ['{"simplerl_ranks": 1}']

    # it starts with the least
    life.head.progress = documents.progress(life.cluster_name)
    for pod in (head, ranks):
        cluster.ready(pod)
    assert life.status["phase"] == "Provisioning"
    cluster.ready(first, "10.0.0.1")
    life.reaches("Starting", "DriverStarting")
    cluster.unschedulable(third, "0/4 nodes are available")
    life.head.say(state="Training", engines={"current": 1, "desired": 3, "idle": []})
    life.reaches("Training", "Training")
    why = f"pod {third}: 0/4 nodes are available"
    life.says("EnginesComing", f"1 of 3 engines draw; 1 of 3 pods of engines run: {why}")

    # and takes the others as they come
    cluster.ready(second, "10.0.0.2")
    cluster.ready(third, "10.0.0.3")
    life.head.say(step=1, engines={"current": 3, "desired": 3, "idle": []})
    life.says("EnginesScaled", "3 of 3 engines draw, in 3 pods")
    assert (life.status["cluster"]["readyWorkers"], life.status["cluster"]["desiredWorkers"]) == (4, 4)

    # one that holds no engine goes, and no other
    life.head.say(step=2, engines={"current": 2, "desired": 1, "idle": ["10.0.0.2"]})
    assert life.engines(2) == [first, third]
    assert life.replicas() == 2
    life.says("EnginesLeaving", "2 engines draw, 1 are wanted: pods that hold none go")
    life.head.say(step=3, engines={"current": 1, "desired": 1, "idle": ["10.0.0.2", "10.0.0.3"]})
    assert life.engines(1) == [first]
    life.says("EnginesScaled", "1 of 1 engines draw, in 1 pod")
    eventually("the count", lambda: life.status["cluster"]["desiredWorkers"] == 2)

    # more are made
    life.head.say(step=4, engines={"current": 1, "desired": 2, "idle": []})
    (other,) = set(life.engines(2)) - {first}
    life.says("EnginesComing", "1 of 2 engines draw; 1 of 2 pods of engines run")
    cluster.ready(other, "10.0.0.4")
    life.head.say(step=5, engines={"current": 2, "desired": 2, "idle": []})
    life.says("EnginesScaled", "2 of 2 engines draw, in 2 pods")

    # one that somebody deletes is replaced
    cluster.delete_pod(first)
    eventually("another", lambda: first not in (there := life.engines(2)) and other in there)
    life.head.say(step=6, engines={"current": 1, "desired": 2, "idle": []})
    eventually("step 6", lambda: life.status["training"]["step"] == 6)
    status = life.status
    assert (status["phase"], status["attempt"], status.get("failures", 0)) == ("Training", 1, 0)
    assert life.pods("workers").keys() == {ranks}
    told = [e["reason"] for e in life.events()]
    assert {"EnginesScaled", "EnginesComing", "EnginesLeaving"} <= set(told)

    # a pod of ranks is another matter
    cluster.delete_pod(ranks)
    life.reaches("Recovering", "WorkerLost")
    assert life.status["failures"] == 1


async def test_what_was_decided_on_an_old_look_changes_nothing(lives: tuple[ControlPlane, Heads]) -> None:
    plane, heads = lives
    life = ElasticLife(plane, heads, plane.namespace("elastic-old"), **ELASTIC)
    life.engines(3)
    configuration = client.Configuration()
    path = str(plane.kubeconfig(ADMIN_TOKEN))
    await config.load_kube_config(path, client_configuration=configuration)  # type: ignore[no-untyped-call]
    api = KubernetesApi(configuration)
    job = read(plane.find(life.path), "trainer")
    for group in (Group(index=1, replicas=2), Group(index=0, replicas=1)):
        old = EnginePods(group=group, replicas=0, leaving=())
        with pytest.raises(Refused) as refusal:
            await children.scale(api, job, old)
        assert refusal.value.status == 422
    await api.close()
    assert life.replicas() == 3


def test_the_number_of_engines_is_the_specs_from_the_start(lives: tuple[ControlPlane, Heads]) -> None:
    plane, heads = lives
    sections = {**ELASTIC, "rollout": {**ELASTIC["rollout"], "engines": 2}}
    life = ElasticLife(plane, heads, plane.namespace("elastic-two"), **sections)
    pods = life.engines(2)
    cluster = life.cluster()
    life.head.progress = documents.progress(life.cluster_name)
    for n, pod in enumerate([*life.pods("headgroup"), *life.pods("workers"), *pods]):
        cluster.ready(pod, f"10.0.1.{n}")
    life.reaches("Starting", "DriverStarting")
    life.head.say(state="Training", engines={"current": 2, "desired": 2, "idle": []})
    life.says("EnginesScaled", "2 of 2 engines draw, in 2 pods")
    life.change(rollout={"engines": 3})
    eventually("the wish", lambda: life.head.controls[-1:] == [{"engines": 3}])
    life.head.say(engines={"current": 2, "desired": 3, "idle": []})
    life.engines(3)
    with pytest.raises(Exception, match=r"rollout\.engines must be within rollout\.elastic"):
        life.change(rollout={"engines": 4})
