"""What a real KubeRay meets when a real API server admits its pods: quotas, limits, policies, PodSecurity."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.operator import documents
from tests.operator.control_plane import ApiRefusal, ControlPlane, eventually
from tests.operator.controllers import Controllers
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

NAMESPACES = [f"with-kuberay-{n}" for n in range(6)]
_left = iter(NAMESPACES)
SECONDS = 15
"""Within these seconds a child's trouble stands on the object."""


@pytest.fixture(scope="module")
def kuberay(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    for namespace in NAMESPACES:
        plane.namespace(namespace)
    controllers = Controllers(plane, tmp_path_factory.mktemp("kuberay"))
    try:
        controllers.kuberay(NAMESPACES)
        yield
    finally:
        controllers.stop_all()


@pytest.fixture
def place(kuberay: None) -> str:
    """A namespace in which KubeRay acts."""
    return next(_left)


def quota(plane: ControlPlane, namespace: str, pods: int) -> None:
    path, hard = f"/api/v1/namespaces/{namespace}/resourcequotas/few", {"pods": str(pods)}
    used = (plane.find(path) or {}).get("status", {}).get("used", {"pods": "0"})
    plane.apply(
        path, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    )
    # the quota controller writes this; admission rests on it
    plane.merge(path + "/status", {"status": {"hard": hard, "used": used}})


def pods_of(plane: ControlPlane, life: Life) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plane.request(
        "GET", f"/api/v1/namespaces/{life.namespace}/pods?labelSelector=simplerl.io/job-uid%3D{life.uid}"
    )["items"]
    return found


def test_pods_that_a_quota_denies_are_told_and_made_once_it_is_raised(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, place: str
) -> None:
    # 11 (kuberay#2357): pods denied by a quota while the cluster's state says ready
    quota(plane, place, 2)
    life = Life(plane, heads, place)
    life.reaches("Provisioning", "PodCreationFailed", seconds=SECONDS)
    message = life.condition("ClusterReady")["message"]
    assert message.startswith("2 of 4 pods are made: ")
    assert "exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2" in message
    quota(plane, place, 10)
    eventually("all pods", lambda: len(pods_of(plane, life)) == 4, 60)
    life.reaches("Provisioning", "WaitingForPods", seconds=30)


def test_pods_beyond_a_limit_range_are_told_with_the_limit(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, place: str
) -> None:
    # 13 (kuberay#2210): creation of children is rejected, and the status is empty
    limits = [{"type": "Container", "max": {"memory": "64Mi"}}]
    manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}}
    plane.apply(f"/api/v1/namespaces/{place}/limitranges/small", manifest)
    life = Life(plane, heads, place)
    life.reaches("Provisioning", "PodCreationFailed", seconds=SECONDS)
    assert "maximum memory usage per Container is 64Mi" in life.condition("ClusterReady")["message"]


def test_pods_that_a_policy_of_the_cluster_refuses_are_told_in_its_words(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, place: str
) -> None:
    # 13 (trainer#2351); a webhook's refusal takes the same way
    policies = "/apis/admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "cost-centre"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [
                {
                    "expression": "has(object.metadata.labels) && 'team' in object.metadata.labels",
                    "message": "pods need a label team",
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "cost-centre"},
        "spec": {
            "policyName": "cost-centre",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place}}},
        },
    }
    plane.apply(f"{policies}/validatingadmissionpolicies/cost-centre", policy)
    plane.apply(f"{policies}/validatingadmissionpolicybindings/cost-centre", binding)
    try:
        probe = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        eventually("the policy to act", lambda: _refused(plane, place, probe), 60)
        life = Life(plane, heads, place)
        life.reaches("Provisioning", "PodCreationFailed", seconds=SECONDS)
        assert "pods need a label team" in life.condition("ClusterReady")["message"]
    finally:
        plane.request("DELETE", f"{policies}/validatingadmissionpolicybindings/cost-centre")
        plane.request("DELETE", f"{policies}/validatingadmissionpolicies/cost-centre")


def _refused(plane: ControlPlane, namespace: str, pod: dict[str, Any]) -> bool:
    try:
        plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    except ApiRefusal as refusal:
        return "pods need a label team" in str(refusal)
    return False


def test_a_namespace_that_enforces_the_restricted_standard_takes_all_that_kuberay_makes(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, place: str
) -> None:
    enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.merge(f"/api/v1/namespaces/{place}", {"metadata": {"labels": enforce}})
    root = {"metadata": {"name": "root"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(ApiRefusal, match='violates PodSecurity "restricted'):
        plane.request("POST", f"/api/v1/namespaces/{place}/pods?dryRun=All", root)
    life = Life(plane, heads, place)
    cluster = life.cluster()
    pods = eventually("all pods", lambda: found if len(found := pods_of(plane, life)) == 4 else None, 30)
    by_role = {role: list(group) for role, group in itertools.groupby(sorted(pods, key=_role), key=_role)}
    assert [len(by_role[role]) for role in ("head", "worker")] == [1, 3]
    inits = [c["name"] for pod in by_role["worker"] for c in pod["spec"].get("initContainers", [])]
    assert len(inits) == 3, "KubeRay's own init containers were taken too"
    for pod in pods:
        variables = pod["spec"]["containers"][0]["env"]
        token = next(v for v in variables if v["name"] == "RAY_AUTH_TOKEN")
        assert token["valueFrom"]["secretKeyRef"]["name"] == cluster.document["spec"]["authOptions"]["secretName"]
    life.head.progress = documents.progress(life.cluster_name)
    for pod in pods:
        cluster.ready(pod["metadata"]["name"])
    life.reaches("Starting", "DriverStarting", seconds=30)
    life.head.say(state="Training")
    life.reaches("Training", "Training")


def test_a_lost_head_is_not_made_anew_by_kuberay_and_the_job_says_so(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, place: str
) -> None:
    # 2, 3, 12 (kuberay#1489, #4272, #2238): heads made again and again, GPUs kept, state ready though the head is gone
    life = Life(plane, heads, place)
    cluster = life.cluster()
    pods = eventually("all pods", lambda: found if len(found := pods_of(plane, life)) == 4 else None, 30)
    life.head.progress = documents.progress(life.cluster_name)
    for pod in pods:
        cluster.ready(pod["metadata"]["name"])
    life.reaches("Starting", "DriverStarting", seconds=30)
    life.head.say(state="Training")
    life.reaches("Training", "Training")
    head = next(pod["metadata"]["name"] for pod in pods if _role(pod) == "head")
    cluster.end(head, 137, "OOMKilled")
    began = time.monotonic()
    eventually("the loss", lambda: life.status.get("attempts"), SECONDS)
    assert time.monotonic() - began < SECONDS
    assert life.status["attempts"][0]["reason"] == "HeadLost"
    assert (
        "container ray-head OOMKilled (exit code 137) at its memory limit of" in life.status["attempts"][0]["message"]
    )


def _role(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["simplerl.io/role"])
