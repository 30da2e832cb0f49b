"""Golden manifests. `GOLDEN=write python -m pytest tests/operator/test_build.py` writes them anew."""

import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator import documents
from tests.operator.observations import job

from simplerl_api import quantity, yaml12
from simplerl_operator.build import network_policy, ray_cluster, run, secret
from simplerl_operator.build.network_policy import Reach
from simplerl_operator.observe.job import Job

GOLDEN = Path(__file__).parent / "golden"
KEY = b"k" * 32

EIGHT_GPUS = job(
    name="math-7b",
    model={"path": "/models/qwen"},
    placement=None,
    cluster={
        "gpus": 16,
        "gpusPerNode": 8,
        "image": "registry.example/mine:2",
        "imagePullSecrets": [{"name": "pull"}],
        "priorityClassName": "high",
        "schedulerName": "volcano",
        "env": [{"name": "NCCL_DEBUG", "value": "WARN"}],
        "head": {"nodeSelector": {"pool": "cpu"}},
        "workers": {
            "nodeSelector": {"pool": "h200"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "resources": {"requests": {"cpu": "96", "memory": "1Ti"}, "limits": {"memory": "1Ti"}},
        },
        "volumes": [
            {"mountPath": "/models", "claimName": "models"},
            {"mountPath": "/code", "configMapName": "rewards"},
            {"mountPath": "/keys", "secretName": "keys", "readOnly": True},
        ],
    },
    checkpoint={"claimName": "ckpt"},
)
TOKEN = {"name": "hub", "key": "token"}
FROM_A_HUB = job(
    name="hub",
    model={"hub": {"name": "Qwen/Qwen2.5-0.5B", "revision": "v1", "tokenSecretRef": TOKEN}, "cacheClaimName": "cache"},
    data={"train": {"hub": {"name": "openai/gsm8k", "config": "main", "split": "train", "tokenSecretRef": TOKEN}}},
    rewards=[
        {"name": "own", "python": {"configMap": {"name": "rewards", "key": "score.py"}}},
        {"name": "judge", "http": {"url": "http://judge:8000/", "tokenSecretRef": {"name": "judge", "key": "key"}}},
    ],
    cluster={"gpus": 3, "gpusPerNode": 1, "cpuOnly": True, "env": [{"name": "HF_ENDPOINT", "value": "http://mirror"}]},
)
ELASTIC = job(
    name="elastic",
    placement={"disaggregated": {"trainingGpus": 8}},
    rollout={"promptsPerStep": 1024, "engines": 16, "elastic": {"minEngines": 8, "maxEngines": 24}},
    cluster={"gpus": 32, "gpusPerNode": 8},
)
OWN = [
    {"name": "HF_HUB_OFFLINE", "value": "1"},
    {"name": "RAY_USAGE_STATS_ENABLED", "value": "1"},
    {"name": "A", "value": "1"},
    {"name": "A", "value": "2"},
]
OPERATOR_ONLY = Reach(operator_namespace="simplerl-system")
OTHERS_TOO = Reach(
    operator_namespace="simplerl-system",
    dashboard_from=[{"ipBlock": {"cidr": "10.1.0.0/16"}}],
    metrics_from=[{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}],
)
MANIFESTS: dict[str, tuple[Callable[[Job], dict[str, Any]], Job]] = {
    "ray-cluster-tiny": (ray_cluster.ray_cluster, job()),
    "ray-cluster-two-nodes-of-eight-gpus": (ray_cluster.ray_cluster, EIGHT_GPUS),
    "ray-cluster-from-a-hub": (ray_cluster.ray_cluster, FROM_A_HUB),
    "ray-cluster-whose-engines-come-and-go": (ray_cluster.ray_cluster, ELASTIC),
    "config-map-tiny": (run.config_map, job()),
    "network-policy-tiny": (lambda tiny: network_policy.network_policy(tiny, OPERATOR_ONLY), job()),
    "network-policy-with-others": (lambda tiny: network_policy.network_policy(tiny, OTHERS_TOO), job()),
    "secret-tiny": (lambda tiny: secret.secret(tiny, secret.token(KEY, tiny.uid)), job()),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_manifest_is_the_golden_one(name: str) -> None:
    build, built_for = MANIFESTS[name]
    text = yaml12.dump(build(built_for))
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert text == yaml12.dump(build(built_for))


def containers(manifest: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    spec = manifest["spec"]
    templates = [spec["headGroupSpec"]["template"], *(g["template"] for g in spec["workerGroupSpecs"])]
    return [(t["spec"], t["spec"]["containers"][0]) for t in templates]


def test_the_driver_alone_gets_the_key_of_a_tracker_and_by_reference() -> None:
    tracked = job(tracking={"wandb": {"apiKeySecretRef": {"name": "wandb", "key": "api-key"}}})
    (_, head), (_, worker) = containers(ray_cluster.ray_cluster(tracked))
    assert {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "api-key"}}} in head["env"]
    assert "WANDB_API_KEY" not in str(worker)


@pytest.mark.parametrize("built_for", [job(), EIGHT_GPUS], ids=["on CPUs", "on GPUs"])
def test_pods_keep_to_the_restricted_standard(built_for: Job) -> None:
    for pod, container in containers(ray_cluster.ray_cluster(built_for)):
        security = container["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["restartPolicy"] == "Never"


@pytest.mark.parametrize("built_for", [job(), EIGHT_GPUS], ids=["on CPUs", "on GPUs"])
def test_shared_memory_is_mounted_once_and_the_object_store_fits_in(built_for: Job) -> None:
    manifest = ray_cluster.ray_cluster(built_for)
    for pod, container in containers(manifest):
        assert [m["name"] for m in container["volumeMounts"]].count("shm") == 1
        assert [m["mountPath"] for m in container["volumeMounts"]].count("/dev/shm") == 1
        names = [v["name"] for v in pod["volumes"]]
        assert len(names) == len(set(names))
    assert built_for.plan is not None
    store = int(manifest["spec"]["headGroupSpec"]["rayStartParams"]["object-store-memory"])
    assert 78_643_200 <= store <= quantity.number(built_for.plan.shm_size)


def test_no_text_of_a_user_is_in_a_command() -> None:
    hook = ["python", "-m", "simplerl_trainer.prestop", "--seconds", "120"]
    for _, container in containers(ray_cluster.ray_cluster(EIGHT_GPUS)):
        assert container["lifecycle"] == {"preStop": {"exec": {"command": hook}}}
        assert "command" not in container
        assert "args" not in container


def test_only_pods_with_ranks_ask_for_a_drain_before_they_end() -> None:
    head, worker = (container for _, container in containers(ray_cluster.ray_cluster(job())))
    assert "lifecycle" in head
    assert "lifecycle" not in worker  # it may be an engine's alone, and training goes on without it


def test_what_a_secret_holds_is_a_variable_of_the_containers_that_need_it() -> None:
    head, worker = (container for _, container in containers(ray_cluster.ray_cluster(FROM_A_HUB)))
    secrets = [
        {e["name"]: e["valueFrom"]["secretKeyRef"] for e in container["env"] if "valueFrom" in e}
        for container in (head, worker)
    ]
    assert secrets == [
        {"HF_TOKEN": TOKEN, "SIMPLERL_REWARD_1_TOKEN": {"name": "judge", "key": "key"}},
        {"HF_TOKEN": TOKEN},
    ]
    for container in (head, worker):
        plain = {e["name"]: e["value"] for e in container["env"] if "value" in e}
        assert plain["HF_HUB_OFFLINE"] == "0"
        assert plain["HF_HOME"] == "/hub-cache"
        assert {"name": "hub-cache", "mountPath": "/hub-cache"} in container["volumeMounts"]
    code = {"name": "reward-0", "mountPath": "/etc/simplerl-rewards/0", "readOnly": True}
    assert [code in c["volumeMounts"] for c in (head, worker)] == [True, False]


def test_a_jobs_own_variables_win_and_each_name_stands_once() -> None:
    own = job(
        model={"hub": {"name": "a/b"}},
        cluster={"gpus": 3, "gpusPerNode": 1, "env": OWN},
    )
    for _, container in containers(ray_cluster.ray_cluster(own)):
        names = [e["name"] for e in container["env"]]
        assert len(names) == len(set(names))
        assert {e["name"]: e["value"] for e in container["env"]} == {
            "HOME": "/tmp/home", "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "1", "A": "2"
        }  # fmt: skip


def test_a_token_is_the_jobs_own_and_the_same_each_time() -> None:
    assert secret.token(KEY, "a") == secret.token(KEY, "a")
    assert secret.token(KEY, "a") != secret.token(KEY, "b")
    assert secret.token(KEY, "a") != secret.token(b"x" * 32, "a")


QUANTITIES = {"500m": "0.5", "16Gi": "17179869184", "1.5k": "1500", "3": "3", "2Ti": "2199023255552"}


@pytest.mark.parametrize(("text", "number"), QUANTITIES.items(), ids=QUANTITIES)
def test_quantities_read(text: str, number: str) -> None:
    assert quantity.number(text) == Decimal(number)


@given(st.text(max_size=8))
def test_whatever_is_no_quantity_is_named(text: str) -> None:
    try:
        quantity.number(text)
    except ValueError as error:
        assert repr(text) in str(error)


def test_nobody_but_the_job_and_the_operator_is_let_in_unless_told() -> None:
    # 28 (kuberay#3987): any pod could submit to the dashboard
    ingress = network_policy.network_policy(job(), OPERATOR_ONLY)["spec"]["ingress"]
    assert all(rule["from"] for rule in ingress), "a rule without peers lets everybody in"
    ports = [port["port"] for rule in ingress[1:] for port in rule["ports"]]
    assert ports == [8265, 8400]


def test_every_golden_file_has_its_manifest() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(MANIFESTS)
    assert documents.TINY["cluster"]["cpuOnly"] is True
