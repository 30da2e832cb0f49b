"""The chart: rendered with its values, checked against a real API server and against what the operator's code calls."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.operator import programs
from tests.operator.control_plane import ControlPlane

from simplerl_api import yaml12

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/simplerl-operator"


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(programs.path("helm")), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def render(*settings: str) -> list[dict[str, Any]]:
    arguments = [part for setting in settings for part in ("--set-json", setting)]
    done = helm("template", "rl", str(CHART), "--namespace=rl-system", *arguments)
    assert done.returncode == 0, done.stderr
    return yaml12.load_all(done.stdout)


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(d for d in documents if d["kind"] == kind)


def operator_container(documents: list[dict[str, Any]]) -> dict[str, Any]:
    container: dict[str, Any] = of_kind(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return container


def test_it_renders_the_same_each_time() -> None:
    assert render() == render()


def test_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_the_api_server_takes_every_manifest(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    done = helm("template", "rl", str(CHART), f"--namespace={namespace}")
    manifests = tmp_path / "all.yaml"
    manifests.write_text(done.stdout)
    kubeconfig = plane.kubeconfig("admin-of-the-tests")
    applied = subprocess.run(
        [str(programs.path("kubectl")), f"--kubeconfig={kubeconfig}", "apply", "--server-side", "--dry-run=server",
         "--validate=strict", "--force-conflicts", "-f", str(manifests)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert applied.returncode == 0, applied.stderr
    assert "Warning" not in applied.stderr, "PodSecurity restricted warns"


def test_the_namespace_may_enforce_the_restricted_standard(plane: ControlPlane, namespace: str) -> None:
    plane.merge(
        f"/api/v1/namespaces/{namespace}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    )
    pod = of_kind(render(), "Deployment")["spec"]["template"]
    pod["metadata"]["name"] = "operator"
    pod["spec"].pop("serviceAccountName")
    plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", {"apiVersion": "v1", "kind": "Pod", **pod})


def test_the_crd_is_the_generated_one_and_stays_on_uninstall() -> None:
    crd = of_kind(render(), "CustomResourceDefinition")
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == yaml12.load((ROOT / "crds/simplerljobs.yaml").read_text())


def test_the_crd_can_be_left_out() -> None:
    assert "CustomResourceDefinition" not in {d["kind"] for d in render("crds.install=false")}


def test_one_replica_is_replaced_before_the_next_comes() -> None:
    spec = of_kind(render(), "Deployment")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


def test_values_reach_the_operator() -> None:
    container = operator_container(
        render(
            'image="r.example/o:2"',
            'trainerImage="r.example/t:3"',
            'logLevel="DEBUG"',
            "workers=3",
            'namespaces=["a","b"]',
        )
    )
    environment = {v["name"]: v.get("value") for v in container["env"]}
    assert container["image"] == "r.example/o:2"
    assert environment == {
        "SIMPLERL_TRAINER_IMAGE": "r.example/t:3",
        "SIMPLERL_LOG_LEVEL": "DEBUG",
        "SIMPLERL_WORKERS": "3",
        "SIMPLERL_NAMESPACES": "a,b",
        "OPERATOR_NAMESPACE": None,
    }


OTHERS = [
    'imagePullSecrets=["pull"]', 'imagePullPolicy="Always"', 'resources={"limits":{"memory":"1Gi"}}',
    'nodeSelector={"a":"b"}', 'tolerations=[{"operator":"Exists"}]', 'affinity={"nodeAffinity":{}}',
    'priorityClassName="high"', 'podLabels={"a":"b"}', 'podAnnotations={"a":"b"}', 'serviceAccount={"name":"sa"}',
    'serviceAccount={"annotations":{"a":"b"}}', "metrics.service=false", "crds.install=false",
]  # fmt: skip


@pytest.mark.parametrize("setting", OTHERS)
def test_every_value_changes_what_is_rendered(setting: str) -> None:
    assert render(setting) != render()


def test_every_value_is_tried_here() -> None:
    values = set(yaml12.load((CHART / "values.yaml").read_text()))
    tried = {re.split(r"[.=]", setting)[0] for setting in OTHERS}
    assert values == tried | {"image", "trainerImage", "logLevel", "workers", "namespaces"}
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert values == set(schema["properties"]) - {"global"}


WRONG = [
    ('logLevl="INFO"', "additional properties 'logLevl' not allowed"),
    ('logLevel="LOUD"', "value must be one of"),
    ("workers=0", "minimum: got 0, want 1"),
    ('crds={"instal":true}', "additional properties 'instal' not allowed"),
]


@pytest.mark.parametrize(("setting", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_value_fails_the_installation(setting: str, message: str) -> None:
    done = helm("template", "rl", str(CHART), "--set-json", setting)
    assert done.returncode != 0
    assert message in done.stderr


def test_with_namespaces_the_operator_has_no_rights_elsewhere() -> None:
    documents = render('namespaces=["a","b"]')
    kinds = [(d["kind"], d["metadata"].get("namespace")) for d in documents if "Role" in d["kind"]]
    assert not [k for k, _ in kinds if k.startswith("Cluster")]
    assert {n for _, n in kinds} == {"a", "b", "rl-system"}


def rights(documents: list[dict[str, Any]], kind: str, name: str) -> set[tuple[str, str, str]]:
    rules = next(d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name)["rules"]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def test_the_rights_are_these_and_no_others() -> None:
    documents = render()
    assert rights(documents, "ClusterRole", "rl") == {
        ("simplerl.io", "simplerljobs", "get"),
        ("simplerl.io", "simplerljobs", "list"),
        ("simplerl.io", "simplerljobs", "watch"),
        ("kueue.x-k8s.io", "workloads", "list"),
        ("simplerl.io", "simplerljobs/status", "patch"),
        ("ray.io", "rayclusters", "get"),
        ("ray.io", "rayclusters", "list"),
        ("ray.io", "rayclusters", "watch"),
        ("ray.io", "rayclusters", "create"),
        ("ray.io", "rayclusters", "delete"),
        ("", "pods", "list"),
        ("", "pods", "watch"),
        ("", "events", "list"),
        ("", "events", "create"),
        ("", "configmaps", "get"),
        ("", "configmaps", "create"),
        ("", "persistentvolumeclaims", "get"),
        ("", "secrets", "create"),
    }
    assert rights(documents, "Role", "rl-key") == {("", "secrets", "get"), ("", "secrets", "create")}


def test_it_is_installed_and_names_the_next_command(plane: ControlPlane, namespace: str) -> None:
    reach = (f"--namespace={namespace}", f"--kubeconfig={plane.kubeconfig('admin-of-the-tests')}")
    done = helm("install", "rl", str(CHART), "--set=crds.install=false", *reach)
    assert done.returncode == 0, done.stderr
    assert "kubectl apply -f examples/tiny.yaml" in done.stdout
    assert "kubectl get simplerljobs -w" in done.stdout
    assert helm("upgrade", "rl", str(CHART), "--set=crds.install=false", *reach).returncode == 0
    assert helm("uninstall", "rl", *reach).returncode == 0
