"""A release's whole life with a job in it: first light's chart and operator, the upgrade to this tree's, the removal.
Real API server, Helm, KubeRay, garbage collector and namespace controller; the kubelet is the test."""

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.chart.test_chart import CHART, ROOT, helm
from tests.operator import documents, programs
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually
from tests.operator.controllers import Controllers
from tests.operator.heads import Heads
from tests.operator.kuberay import Cluster
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

FIRST_LIGHT = "5889b6500b43d8cbd097678401cc177f7d5e33fa"
"""The last commit before the chart knew more than it was born with."""
FIRST_LIGHTS_RECOVERY = {"startupDeadlineSeconds": 600, "stallTimeoutSeconds": 600}
"""The section as first light knew it: other fields came later."""
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/simplerljobs.simplerl.io"
FIGURES = ("status.training", "status.summary", "status.lastProgressTime")


@pytest.fixture(scope="module")
def first_light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of first light."""
    words = ["git", "-C", str(ROOT), "archive", FIRST_LIGHT, "charts", "crds", "operator"]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        pytest.skip(f"the history is shallow, commit {FIRST_LIGHT} is not in it: git fetch --unshallow")
    folder = tmp_path_factory.mktemp("first-light")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Site:
    """A control plane of its own, with the controllers that matter to a release."""

    def __init__(self, folder: Path, heads: Heads) -> None:
        self.folder = folder
        self.heads = heads
        self.plane = ControlPlane(folder, programs.path("etcd"), programs.path("kube-apiserver"))
        self._controllers = Controllers(self.plane, folder)

    def start(self) -> None:
        self.plane.start()
        self._controllers.kuberay()
        self._controllers.garbage_collector("namespace-controller")

    def stop(self) -> None:
        self._controllers.stop_all()
        self.plane.stop()

    def helm(self, *words: str) -> None:
        reach = ("--namespace=simplerl-system", f"--kubeconfig={self.plane.kubeconfig(ADMIN_TOKEN)}")
        done = helm(*words, *reach)
        assert done.returncode == 0, done.stderr

    def operator(self, tree: Path, **environment: str) -> OperatorProcess:
        path = os.pathsep.join(str(tree / part) for part in ("crds", "operator"))
        address = f"http://127.0.0.1:{self.heads.port}/{{namespace}}/{{cluster}}"
        return OperatorProcess(self.plane, self.folder, address, PYTHONPATH=path, **environment)

    def training(self, namespace: str, name: str) -> Life:
        """A job whose driver trains, in pods of KubeRay's making."""
        life = Life(self.plane, self.heads, namespace, name, recovery=FIRST_LIGHTS_RECOVERY)
        cluster = Cluster(self.plane, namespace, life.cluster_name)
        life.head.progress = documents.progress(life.cluster_name)
        pods = f"/api/v1/namespaces/{namespace}/pods?labelSelector=ray.io/cluster={life.cluster_name}"
        four = eventually("four pods", lambda: found if len(found := self.plane.find(pods)["items"]) == 4 else None)
        for pod in four:
            cluster.ready(pod["metadata"]["name"])
        life.reaches("Starting", "DriverStarting")
        life.head.say(state="Training", step=0)
        life.reaches("Training", "Training")
        return life


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    heads = Heads()
    heads.start()
    found = Site(tmp_path_factory.mktemp("site"), heads)
    try:
        found.start()
        found.plane.namespace("simplerl-system")
        yield found
    finally:
        found.stop()
        heads.stop()


def leaves(document: Any, path: str = "") -> dict[str, Any]:
    """Every value of a document by its path; conditions by their type."""
    if isinstance(document, Mapping) and document:
        return {k: v for name, inner in document.items() for k, v in leaves(inner, f"{path}.{name}").items()}
    if isinstance(document, list) and document:
        keys = [item.get("type", i) if isinstance(item, Mapping) else i for i, item in enumerate(document)]
        return {k: v for i, key in enumerate(keys) for k, v in leaves(document[i], f"{path}[{key}]").items()}
    return {path.lstrip("."): document}


def steady(document: dict[str, Any]) -> dict[str, Any]:
    """What an upgrade must leave alone: all of a job but its figures, and the sentences that a newer operator words."""
    parts = {name: document[name] for name in ("spec", "status")}
    parts["metadata"] = {name: document["metadata"][name] for name in ("uid", "generation", "creationTimestamp")}
    found = leaves(parts).items()
    return {path: v for path, v in found if not path.startswith(FIGURES) and not path.endswith("].message")}


def test_a_release_is_upgraded_and_removed_under_a_running_job(site: Site, first_light: Path) -> None:
    # complaints 25 and 26: an upgrade brings the CRD along, prunes nothing and does not touch what runs
    old_chart = str(first_light / "charts/simplerl-operator")
    site.helm("install", "simplerl-operator", old_chart, "--set=trainerImage=registry.example/trainer:1")
    old_schema = site.plane.find(CRD)["spec"]
    operator = site.operator(first_light)
    operator.start()
    try:
        life = site.training(site.plane.namespace("team-a"), "tiny")
        life.head.say(step=7, metrics={"reward": 0.5})
        eventually("step 7", lambda: life.status.get("training", {}).get("step") == 7)
    finally:
        operator.stop()
    job, cluster = site.plane.find(life.path), life.cluster().document
    assert job["status"]["plan"]["image"] == "registry.example/trainer:1"

    defaults = '{"priorityClassName": "system-node-critical"}'
    site.helm(
        "upgrade", "simplerl-operator", str(CHART), "--set=trainerImage=registry.example/trainer:2",
        f"--set-json=jobDefaults={defaults}",
    )  # fmt: skip
    assert site.plane.find(CRD)["spec"] != old_schema, "the CRD came along"
    before, after = steady(job), steady(site.plane.find(life.path))
    assert {path: after.get(path) for path in before} == before, "the new CRD prunes nothing"
    operator = site.operator(ROOT, SIMPLERL_TRAINER_IMAGE="registry.example/trainer:2", SIMPLERL_JOB_DEFAULTS=defaults)
    operator.start()
    try:
        life.head.say(step=8)
        eventually("step 8", lambda: life.status["training"]["step"] == 8)
        before, after = steady(job), steady(site.plane.find(life.path))
        assert {path: after.get(path) for path in before} == before
        live = life.cluster().document
        assert (live["metadata"]["uid"], live["metadata"]["generation"]) == (
            cluster["metadata"]["uid"],
            cluster["metadata"]["generation"],
        )
        assert live["spec"] == cluster["spec"]
        fresh = Life(site.plane, site.heads, "team-a", "fresh")
        plan = eventually("the plan of a new job", lambda: fresh.status.get("plan"))
        assert plan["image"] == "registry.example/trainer:2"
        assert plan["jobDefaults"]["priorityClassName"] == "system-node-critical"
    finally:
        operator.stop()

    site.helm("uninstall", "simplerl-operator")
    assert site.plane.find(CRD)["metadata"].get("deletionTimestamp") is None
    for path in (life.path, life.cluster().path, "/api/v1/namespaces/team-a"):
        metadata = site.plane.find(path)["metadata"]
        assert "deletionTimestamp" not in metadata
        assert not metadata.get("finalizers"), "nothing of ours would hold up its deletion"
    running = life.cluster().document
    assert (running["metadata"]["uid"], running["spec"]) == (cluster["metadata"]["uid"], cluster["spec"])

    # an operator that is installed later takes the job up again
    site.helm("install", "simplerl-operator", str(CHART), "--set=trainerImage=registry.example/trainer:3")
    operator = site.operator(ROOT, SIMPLERL_TRAINER_IMAGE="registry.example/trainer:3")
    operator.start()
    try:
        life.head.say(state="Succeeded", step=60)
        assert life.reaches("Succeeded")["plan"] == job["status"]["plan"]
    finally:
        operator.stop()
    site.helm("uninstall", "simplerl-operator")
    site.helm("install", "other", str(CHART), "--take-ownership")
    site.helm("uninstall", "other")
    # and without any, jobs and namespaces can still be deleted
    site.plane.request("DELETE", fresh.path)
    path = f"/apis/ray.io/v1/namespaces/team-a/rayclusters/{fresh.cluster_name}"
    # the garbage collector looks for new kinds every 30 s, and deletes nothing until it has read them
    eventually("the RayCluster of the deleted job to go", lambda: site.plane.find(path) is None, 90)
    site.plane.request("DELETE", "/api/v1/namespaces/team-a")
    for pod in site.plane.find("/api/v1/namespaces/team-a/pods")["items"]:  # the kubelet's part
        site.plane.remove(f"/api/v1/namespaces/team-a/pods/{pod['metadata']['name']}")
    eventually("the namespace to go", lambda: site.plane.find("/api/v1/namespaces/team-a") is None)
