"""The chart: rendered with its values, checked against a real API server and against what the operator's code calls."""

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.deploy import definitions, exposition
from tests.operator import observations, programs
from tests.operator.control_plane import ControlPlane, eventually

from simplerl_api import GROUP, KIND, PLURAL, VERSION, validation, yaml12
from simplerl_api.job_defaults import JobDefaults
from simplerl_operator import settings
from simplerl_operator.build.ray_cluster import ray_cluster

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/simplerl-operator"


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(programs.path("helm")), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@functools.cache
def rendered(*settings: str) -> str:
    arguments = [part for setting in settings for part in ("--set-json", setting)]
    done = helm("template", "rl", str(CHART), "--namespace=rl-system", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(*settings: str) -> list[dict[str, Any]]:
    return yaml12.load_all(rendered(*settings))


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(d for d in documents if d["kind"] == kind)


def operator_container(documents: list[dict[str, Any]]) -> dict[str, Any]:
    container: dict[str, Any] = of_kind(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return container


def test_it_renders_the_same_each_time() -> None:
    assert rendered() == rendered.__wrapped__()


def test_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


OUTPUTS = {
    "defaults": [],
    "everything": [
        'namespaces=["default"]', "metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true",
        "metrics.prometheusRule.enabled=true", 'priorityClassName="system-cluster-critical"', 'nodeSelector={"a":"b"}',
        'tolerations=[{"key":"a","operator":"Exists"}]', 'imagePullSecrets=["pull"]', 'affinity={"nodeAffinity":{}}',
        'jobDefaults={"perGpu":{"cpu":"4"},"head":{"nodeSelector":{"a":"b"}}}', 'podLabels={"a":"b"}',
        'podAnnotations={"a":"b"}', 'serviceAccount={"name":"sa","annotations":{"a":"b"}}',
    ],
}  # fmt: skip


@pytest.fixture(scope="session")
def monitoring(plane: ControlPlane) -> None:
    """The kinds of the Prometheus operator."""
    plurals = ("servicemonitors", "podmonitors", "prometheusrules")
    for path in definitions.of("prometheus-operator/prometheus-operator", *plurals):
        install(plane, path)


@pytest.fixture(scope="session")
def flux(plane: ControlPlane) -> None:
    """The kinds of Flux."""
    for path in (
        *definitions.of("fluxcd/kustomize-controller", "kustomizations"),
        *definitions.of("fluxcd/helm-controller", "helmreleases"),
    ):
        install(plane, path)


def install(plane: ControlPlane, crd: Path) -> None:
    kubectl(plane, "apply", "--server-side", "-f", str(crd))
    group, plural = crd.stem.rsplit("_", 1)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}"
    eventually(f"{plural} to be served", lambda: established(plane.find(path)), 30)


def kubectl(plane: ControlPlane, *words: str) -> str:
    """What kubectl says on both of its outputs."""
    command = [str(programs.path("kubectl")), f"--kubeconfig={plane.kubeconfig('admin-of-the-tests')}", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def established(crd: dict[str, Any]) -> bool:
    found = {c["type"]: c["status"] for c in crd.get("status", {}).get("conditions") or []}
    return found.get("Established") == "True"


REHEARSAL = ("apply", "--server-side", "--dry-run=server", "--validate=strict")


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.usefixtures("monitoring")
def test_the_api_server_takes_every_manifest(plane: ControlPlane, namespace: str, tmp_path: Path, name: str) -> None:
    arguments = [part for setting in OUTPUTS[name] for part in ("--set-json", setting)]
    done = helm("template", "rl", str(CHART), f"--namespace={namespace}", *arguments)
    assert done.returncode == 0, done.stderr
    manifests = tmp_path / "all.yaml"
    manifests.write_text(done.stdout)
    said = kubectl(plane, *REHEARSAL, "--force-conflicts", "-f", str(manifests))
    assert "Warning" not in said, "PodSecurity restricted warns"


@pytest.mark.parametrize("name", ["operator", "jobs"])
@pytest.mark.usefixtures("flux")
def test_the_api_server_takes_the_objects_of_flux(
    plane: ControlPlane, namespace: str, tmp_path: Path, name: str
) -> None:
    text = (ROOT / f"deploy/flux/{name}.yaml").read_text("utf-8")
    manifest = tmp_path / "flux.yaml"
    manifest.write_text(text.replace("namespace: flux-system", f"namespace: {namespace}"))
    kubectl(plane, *REHEARSAL, "-f", str(manifest))


def test_the_namespace_may_enforce_the_restricted_standard(plane: ControlPlane, namespace: str) -> None:
    plane.merge(
        f"/api/v1/namespaces/{namespace}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    )
    documents = render()
    operator, test = of_kind(documents, "Deployment")["spec"]["template"], of_kind(documents, "Pod")
    operator["metadata"]["name"] = "operator"
    for pod in (operator, test):
        pod["metadata"]["namespace"] = namespace
        pod["spec"].pop("serviceAccountName")
        body = {**pod, "apiVersion": "v1", "kind": "Pod"}
        plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)


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
            'networkPolicy={"metricsFrom":[{"podSelector":{}}]}',
        )
    )
    environment = {v["name"]: v.get("value") for v in container["env"]}
    assert container["image"] == "r.example/o:2"
    assert environment == {
        "SIMPLERL_TRAINER_IMAGE": "r.example/t:3",
        "SIMPLERL_LOG_LEVEL": "DEBUG",
        "SIMPLERL_WORKERS": "3",
        "SIMPLERL_NAMESPACES": "a,b",
        "SIMPLERL_NETWORK_POLICY": '{"dashboardFrom":[],"metricsFrom":[{"podSelector":{}}]}',
        "SIMPLERL_LEASE": "rl",
        "SIMPLERL_IDENTITY": None,
        "OPERATOR_NAMESPACE": None,
    }


OTHERS = [
    'imagePullSecrets=["pull"]', 'imagePullPolicy="Always"', 'resources={"limits":{"memory":"1Gi"}}',
    'nodeSelector={"a":"b"}', 'tolerations=[{"operator":"Exists"}]', 'affinity={"nodeAffinity":{}}',
    'priorityClassName="high"', 'podLabels={"a":"b"}', 'podAnnotations={"a":"b"}', 'serviceAccount={"name":"sa"}',
    'serviceAccount={"annotations":{"a":"b"}}', "metrics.service=false", "crds.install=false",
    "metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true", "metrics.prometheusRule.enabled=true",
    "userRoles.create=false", 'jobDefaults.imageMirror="mirror.example"',
    "networkPolicy.enabled=false",
]  # fmt: skip


@pytest.mark.parametrize("setting", OTHERS)
def test_every_value_changes_what_is_rendered(setting: str) -> None:
    assert rendered(setting) != rendered()


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
    ('jobDefaults={"perGpu":{"cpus":"1"}}', "additional properties 'cpus' not allowed"),
    ('jobDefaults={"perGpu":{"memory":"64 GB"}}', "'64 GB' does not match pattern"),
    ('jobDefaults={"workers":{"tolerations":[{"keys":"a"}]}}', "additional properties 'keys' not allowed"),
    ('metrics={"podMonitor":{"interval":"often"}}', "'often' does not match pattern"),
    (
        'metrics={"service":false,"serviceMonitor":{"enabled":true}}',
        "metrics.serviceMonitor.enabled is true, but metrics.service is false: a ServiceMonitor needs the Service",
    ),
]


@pytest.mark.parametrize(("setting", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_value_fails_the_installation(setting: str, message: str) -> None:
    done = helm("template", "rl", str(CHART), "--set-json", setting)
    assert done.returncode != 0
    assert message in done.stderr


def test_with_namespaces_the_operator_has_no_rights_elsewhere() -> None:
    documents = render('namespaces=["a","b"]')
    assert {d["metadata"]["namespace"] for d in documents if d["kind"] in ("Role", "RoleBinding")} == {
        "a", "b", "rl-system"
    }  # fmt: skip
    assert "ClusterRoleBinding" not in {d["kind"] for d in documents}
    assert {d["metadata"]["name"] for d in documents if d["kind"] == "ClusterRole"} == {"rl-viewer", "rl-editor"}
    without = render('namespaces=["a"]', "userRoles.create=false", "crds.install=false")
    assert {d["kind"] for d in without} == {
        "Role", "RoleBinding", "ServiceAccount", "Deployment", "Service", "Pod"
    }, "whoever owns a namespace may install it"  # fmt: skip


def rights(documents: list[dict[str, Any]], kind: str, name: str) -> set[tuple[str, str, str]]:
    rules = next(d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name)["rules"]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def test_the_rights_are_these_and_no_others() -> None:
    documents = render()
    assert rights(documents, "ClusterRole", "rl") == {
        ("simplerl.io", "simplerljobs", "get"),
        ("simplerl.io", "simplerljobs", "list"),
        ("simplerl.io", "simplerljobs", "watch"),
        ("simplerl.io", "simplerljobs", "delete"),
        ("", "nodes", "get"),
        ("kueue.x-k8s.io", "workloads", "list"),
        ("simplerl.io", "simplerljobs/status", "patch"),
        ("ray.io", "rayclusters", "get"),
        ("ray.io", "rayclusters", "list"),
        ("ray.io", "rayclusters", "watch"),
        ("ray.io", "rayclusters", "create"),
        ("ray.io", "rayclusters", "patch"),
        ("ray.io", "rayclusters", "delete"),
        ("", "pods", "list"),
        ("", "pods", "watch"),
        ("", "events", "list"),
        ("", "events", "create"),
        ("", "configmaps", "get"),
        ("", "configmaps", "create"),
        ("", "persistentvolumeclaims", "get"),
        ("", "secrets", "create"),
        ("networking.k8s.io", "networkpolicies", "create"),
        ("networking.k8s.io", "networkpolicies", "patch"),
    }
    assert rights(documents, "Role", "rl-key") == {
        ("", "secrets", "get"),
        ("", "secrets", "create"),
        ("coordination.k8s.io", "leases", "get"),
        ("coordination.k8s.io", "leases", "update"),
        ("coordination.k8s.io", "leases", "create"),
    }


def test_it_is_installed_and_names_the_next_command(plane: ControlPlane, namespace: str) -> None:
    reach = (f"--namespace={namespace}", f"--kubeconfig={plane.kubeconfig('admin-of-the-tests')}")
    done = helm("install", "rl", str(CHART), "--set=crds.install=false", *reach)
    assert done.returncode == 0, done.stderr
    assert "kubectl apply -f examples/tiny.yaml" in done.stdout
    assert "kubectl get simplerljobs -w" in done.stdout
    assert helm("upgrade", "rl", str(CHART), "--set=crds.install=false", *reach).returncode == 0
    assert helm("uninstall", "rl", *reach).returncode == 0


def test_people_get_rights_by_kubernetes_own_roles() -> None:
    documents = render()
    roles = {d["metadata"]["name"]: d["metadata"]["labels"] for d in documents if d["kind"] == "ClusterRole"}
    aggregated = {
        name: {
            label.removeprefix("rbac.authorization.k8s.io/aggregate-to-") for label in labels if "aggregate" in label
        }
        for name, labels in roles.items()
    }
    assert aggregated == {"rl": set(), "rl-viewer": {"view", "edit", "admin"}, "rl-editor": {"edit", "admin"}}
    assert rights(documents, "ClusterRole", "rl-editor") == {
        ("simplerl.io", "simplerljobs", verb) for verb in ("create", "update", "patch", "delete", "deletecollection")
    }
    assert {v for _, _, v in rights(documents, "ClusterRole", "rl-viewer")} == {"get", "list", "watch"}


MAY = [
    ("rl-viewer", "list", "simplerljobs", True), ("rl-viewer", "get", "simplerljobs/status", True),
    ("rl-viewer", "create", "simplerljobs", False), ("rl-editor", "create", "simplerljobs", True),
    ("rl-editor", "delete", "simplerljobs", True), ("rl-editor", "patch", "simplerljobs/status", False),
]  # fmt: skip


def test_the_api_server_grants_people_these_rights(plane: ControlPlane, namespace: str) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for role in (d for d in render() if d["kind"] == "ClusterRole" and d["metadata"]["name"] != "rl"):
        name = role["metadata"]["name"]
        plane.apply(f"{rbac}/clusterroles/{name}", role)
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"user-of-{name}"}],
        }
        plane.apply(f"{rbac}/namespaces/{namespace}/rolebindings/{name}", binding)

    def granted() -> dict[tuple[str, str, str], bool]:
        found = {}
        for role, verb, resource, _ in MAY:
            plural, _, part = resource.partition("/")
            attributes = {
                "namespace": namespace, "group": "simplerl.io", "resource": plural, "subresource": part, "verb": verb
            }  # fmt: skip
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": f"user-of-{role}", "resourceAttributes": attributes},
            }
            answer = plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            found[role, verb, resource] = answer["status"]["allowed"]
        return found

    expected = {(role, verb, resource): allowed for role, verb, resource, allowed in MAY}
    eventually("the rights of both roles", lambda: granted() == expected, 10)


def test_job_defaults_reach_the_operator_as_it_reads_them() -> None:
    workers = {"nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
    given = {
        "imageMirror": "mirror.example/hub",
        "imagePullSecrets": ["mirror"],
        "priorityClassName": "training",
        "schedulerName": "volcano",
        "perGpu": {"cpu": "12", "memory": "100Gi"},
        "head": {"nodeSelector": {"pool": "cpu"}},
        "workers": workers,
    }
    (text,) = (
        v["value"]
        for v in operator_container(render(f"jobDefaults={json.dumps(given)}"))["env"]
        if v["name"] == "SIMPLERL_JOB_DEFAULTS"
    )
    read = settings.read({"SIMPLERL_TRAINER_IMAGE": "t", "SIMPLERL_JOB_DEFAULTS": text}).job_defaults
    assert read == JobDefaults.model_validate({**given, "imagePullSecrets": [{"name": "mirror"}]})
    assert set(given) == set(yaml12.load((CHART / "values.yaml").read_text())["jobDefaults"])


def test_the_monitors_select_what_there_is() -> None:
    documents = render("metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true", 'namespaces=["a"]')
    monitor, service = of_kind(documents, "ServiceMonitor"), of_kind(documents, "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    pods = of_kind(documents, "PodMonitor")["spec"]
    head = ray_cluster(observations.job())["spec"]["headGroupSpec"]["template"]
    labels = head["metadata"]["labels"]
    for wanted in pods["selector"]["matchExpressions"]:
        assert labels[wanted["key"]] in wanted.get("values", [labels[wanted["key"]]])
    assert pods["podMetricsEndpoints"][0]["port"] in {p["name"] for p in head["spec"]["containers"][0]["ports"]}
    assert pods["namespaceSelector"] == {"matchNames": ["a"]}


def test_alerts_are_on_metrics_that_there_are() -> None:
    rules = of_kind(render("metrics.prometheusRule.enabled=true"), "PrometheusRule")["spec"]["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"simplerl_\w+", rule["expr"])}
    assert len(rules) == len({rule["alert"] for rule in rules}) >= 6
    assert named - exposition.operator() - exposition.driver() == set()


def test_the_alerts_are_those_that_the_page_of_monitoring_names() -> None:
    rules = of_kind(render("metrics.prometheusRule.enabled=true"), "PrometheusRule")["spec"]["groups"][0]["rules"]
    page = (ROOT / "docs/monitoring.md").read_text("utf-8").partition("## What is worth an alert")[2]
    named = re.findall(r"^\| `([^`]+)`", page.partition("\n## ")[0], re.MULTILINE)
    assert len(named) == 5
    assert [n for n in named if not any(rule["expr"].startswith(n) for rule in rules)] == []


def test_a_prometheus_without_its_operator_has_the_same_alerts() -> None:
    rule = of_kind(render("metrics.prometheusRule.enabled=true"), "PrometheusRule")
    assert yaml12.load((ROOT / "deploy/prometheus/alerts.yaml").read_text("utf-8")) == rule["spec"]


def test_the_test_of_the_release_is_not_selected_as_the_operator() -> None:
    documents = render()
    test, service = of_kind(documents, "Pod"), of_kind(documents, "Service")
    assert test["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert not service["spec"]["selector"].items() <= test["metadata"]["labels"].items()
    environment = {v["name"]: v["value"] for v in test["spec"]["containers"][0]["env"]}
    assert environment["SIMPLERL_OPERATOR_URL"] == "http://rl-metrics.rl-system.svc:8080"
    assert "SIMPLERL_OPERATOR_URL" not in str(of_kind(render("metrics.service=false"), "Pod"))


def test_what_the_hub_of_charts_reads_is_so() -> None:
    chart = yaml12.load((CHART / "Chart.yaml").read_text())
    annotations = chart["annotations"]
    (crd,) = yaml12.load(annotations["artifacthub.io/crds"])
    assert (crd["kind"], crd["name"], crd["version"]) == (KIND, f"{PLURAL}.{GROUP}", VERSION)
    (example,) = yaml12.load(annotations["artifacthub.io/crdsExamples"])
    assert validation.faults(example) == []
    images = {i["name"]: i["image"] for i in yaml12.load(annotations["artifacthub.io/images"])}
    assert images["operator"] == operator_container(render())["image"]
    assert images["trainer"] == f"simplerl-trainer:{chart['appVersion']}"
