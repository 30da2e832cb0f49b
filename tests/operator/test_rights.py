"""The operator's rights: by the API server's own audit log, none is missing and none is idle."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.operator import documents, programs
from tests.operator.control_plane import (
    LIMITED_TOKEN,
    LIMITED_USER,
    OPERATOR_USER,
    ControlPlane,
    eventually,
)
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

from simplerl_api import yaml12

CHART = Path(__file__).parents[2] / "charts/simplerl-operator"
Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""


def render(namespace: str, *settings: str) -> list[dict[str, Any]]:
    command = [str(programs.path("helm")), "template", "simplerl-operator", str(CHART), f"--namespace={namespace}"]
    done = subprocess.run(
        [*command, *(part for setting in settings for part in ("--set-json", setting))],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return yaml12.load_all(done.stdout)


def given(documents: list[dict[str, Any]]) -> set[Right]:
    """The rights of the operator's own roles in a rendered chart."""
    bound = {
        d["roleRef"]["name"]
        for d in documents
        if d["kind"].endswith("RoleBinding") and any(s["name"] == "simplerl-operator" for s in d["subjects"])
    }
    roles = [d for d in documents if d["kind"] in ("Role", "ClusterRole") and d["metadata"]["name"] in bound]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(entries: list[dict[str, Any]]) -> set[Right]:
    """The rights that requests made use of."""
    out: set[Right] = set()
    for entry in entries:
        ref = entry["objectRef"]
        resource = "/".join(part for part in (ref["resource"], ref.get("subresource")) if part)
        out.add((ref.get("apiGroup", ""), resource, entry["verb"]))
        if entry["verb"] == "patch" and entry["responseStatus"]["code"] == 201:
            out.add((ref.get("apiGroup", ""), resource, "create"))  # an apply that makes the object needs both
    return out


def denied(entries: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Requests for which a right was missing; quota and admission policies answer 403 too, to what RBAC allowed."""
    decision = "authorization.k8s.io/decision"
    assert all(e["annotations"][decision] in ("allow", "forbid") for e in entries)
    return [(e["verb"], e["requestURI"]) for e in entries if e["annotations"][decision] == "forbid"]


def lead_a_representative_life(plane: ControlPlane, heads: Heads, namespace: str, user: str) -> None:
    """One that needs every right: refused for inputs, standing still, training, ended."""
    core, since = f"/api/v1/namespaces/{namespace}", plane.audit_length()
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"score.py": SCORE}}
    rewards = [{"name": "own", "python": {"configMap": {"name": "code", "key": "score.py"}}}]
    queue = {"kueue.x-k8s.io/queue-name": "gpus"}
    ends = {"ttlSecondsAfterFinished": 1}
    life = Life(
        plane, heads, namespace, "rights", labels=queue, checkpoint={"claimName": "ckpt"}, rewards=rewards, **ends
    )
    life.reaches("Pending", "ClaimNotFound")
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "ckpt"}, "spec": claim}
    plane.apply(f"{core}/persistentvolumeclaims/ckpt", manifest)
    plane.apply(f"{core}/configmaps/code", code)
    cluster = life.cluster()
    still = {("", "events", "list"), ("kueue.x-k8s.io", "workloads", "list")}
    eventually(
        "a cluster that stands still to be asked why", lambda: still <= used(plane.asked(user, since, namespace)), 30
    )
    life.head.progress = documents.progress(life.cluster_name)
    cluster.all_ready()
    life.reaches("Starting", "DriverStarting", seconds=30)
    life.head.say(state="Training")
    life.reaches("Training", "Training")
    life.head.say(state="Succeeded", step=60)
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    eventually("the job to go", lambda: plane.find(life.path) is None, 20)


def give_a_pod_of_engines_back(plane: ControlPlane, heads: Heads, namespace: str) -> None:
    rollout = {**documents.TINY["rollout"], "elastic": {"minEngines": 1, "maxEngines": 2}}
    cluster = {**documents.TINY["cluster"], "gpus": 4}
    life = Life(plane, heads, namespace, "elastic", rollout=rollout, cluster=cluster)
    made = life.training()
    made.ready(f"{made.name}-engines-worker-1", "10.0.0.1")
    life.head.say(engines={"current": 1, "desired": 1, "idle": ["10.0.0.1"]})
    eventually("fewer pods", lambda: made.find()["spec"]["workerGroupSpecs"][1]["replicas"] == 1)
    plane.request("DELETE", life.path)


SCORE = "def score(response): return 1.0"


def test_every_right_is_used_and_none_is_missing(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 29 (kuberay#2213, #3213): too wide RBAC
    lead_a_representative_life(plane, heads, namespace, OPERATOR_USER)
    give_a_pod_of_engines_back(plane, heads, namespace)
    retried = {"backoffLimit": 1}
    lost = Life(plane, heads, namespace, "node", placement={"colocated": {}}, recovery=retried)
    lost.loses_its_heads_node()  # whose node is asked for
    lost.reaches("Provisioning", seconds=40)
    operator.kill()  # its watches and its Lease begin anew
    operator.start()
    entries = plane.asked(OPERATOR_USER)
    assert denied(entries) == [], "a right is missing"
    idle = given(render("simplerl-system")) - used(entries)
    assert idle == set(), "rights that nothing needs"


@pytest.fixture
def limited(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str, tmp_path: Path
) -> Iterator[OperatorProcess]:
    """An operator of one namespace, with the rights that the chart gives it there; no other operator runs."""
    operator.stop()
    plane.namespace("limited-system")
    for document in render("limited-system", f'namespaces=["{namespace}"]'):
        if "Role" in document["kind"] and document["metadata"].get("namespace") in (namespace, "limited-system"):
            where = f"/namespaces/{document['metadata']['namespace']}/{document['kind'].lower()}s"
            plane.apply(f"/apis/rbac.authorization.k8s.io/v1{where}/{document['metadata']['name']}", document)
    process = OperatorProcess(
        plane,
        tmp_path,
        f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}",
        KUBECONFIG=str(plane.kubeconfig(LIMITED_TOKEN)),
        OPERATOR_NAMESPACE="limited-system",
        SIMPLERL_NAMESPACES=namespace,
        SIMPLERL_RESYNC_SECONDS="5",
    )
    try:
        process.start()
        yield process
    finally:
        process.stop()
        operator.start()


def test_an_operator_of_one_namespace_needs_no_right_beyond_it(
    plane: ControlPlane, heads: Heads, limited: OperatorProcess, namespace: str
) -> None:
    # 29 (kuberay#2213, #3213): namespaced install
    elsewhere = Life(plane, heads, plane.namespace(f"{namespace}-elsewhere"))
    lead_a_representative_life(plane, heads, namespace, LIMITED_USER)
    give_a_pod_of_engines_back(plane, heads, namespace)
    entries = plane.asked(LIMITED_USER)
    assert denied(entries) == []
    assert {e["objectRef"].get("namespace") for e in entries} == {namespace, "limited-system"}
    assert elsewhere.status == {}, "jobs of other namespaces are not touched"
    eventually("health", lambda: limited.get("/healthz") == (200, "ok\n"))
    plane.request("DELETE", elsewhere.path)

    # without the right to read nodes it waits for the pods of a dead one, and does not ask
    lost = Life(plane, heads, namespace, "node", placement={"colocated": {}}, recovery={"backoffLimit": 1})
    cluster = lost.loses_its_heads_node()
    lost.reaches("Recovering", "WaitingForOldPods", seconds=40)
    time.sleep(12)  # past the pod's grace period, and another look
    assert lost.condition("Ready")["message"].endswith(f"the next one waits for head pod {cluster.name}-head to go")
    assert denied(plane.asked(LIMITED_USER)) == []
    cluster.delete_pod(f"{cluster.name}-head")  # kubectl delete pod --force
    lost.reaches("Provisioning", seconds=40)
