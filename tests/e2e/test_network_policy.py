"""Who can reach a job's head where NetworkPolicies are enforced: a stranger cannot, the operator's namespace can."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hack.cluster import cluster
from hack.demo import volumes
from tests.e2e import drill as drills
from tests.e2e.conftest import Installed
from tests.e2e.drill import Drill

pytestmark = pytest.mark.long

ASK = """
import socket, sys, time
answer, end = "denied", time.monotonic() + 20
while answer == "denied" and time.monotonic() < end:
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
        answer = "reached"
    except (TimeoutError, ConnectionRefusedError):  # kube-router answers for the pod that it refuses
        time.sleep(1)
print(answer)
"""
"""Asks for 20 s: kube-router takes a new pod's address into its sets a moment after the pod runs, and lets it in then;
who is denied must be denied all the time."""
DASHBOARD, GCS = 8265, 6379


@pytest.fixture(scope="module")
def head(installed: Installed) -> Iterator[str]:
    """The address of the head of a job that trains."""
    if not installed.cluster.embedded:
        pytest.skip("NetworkPolicies are known to be enforced in the embedded cluster only")
    cluster.up(network_policy=True)
    job = Drill(installed.cluster, "walls")
    job.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    job.apply()
    job.until("training", lambda s: s.get("phase") == "Training")
    pod = next(p for p in job.pods() if p["metadata"]["labels"]["simplerl.io/role"] == "head")
    yield pod["status"]["podIP"]
    job.delete()


@pytest.mark.parametrize(
    ("namespace", "port", "answer"),
    [
        ("simplerl-system", DASHBOARD, "reached"),
        ("default", DASHBOARD, "denied"),
        ("default", GCS, "denied"),
        ("simplerl-system", GCS, "denied"),
    ],
)
def test_a_probe_is_let_in_or_not(installed: Installed, head: str, namespace: str, port: int, answer: str) -> None:
    assert probe(installed, namespace, head, port) == answer


def probe(installed: Installed, namespace: str, address: str, port: int) -> str:
    """What a pod in a namespace finds at an address."""
    run, name = installed.cluster.run, f"probe-{port}"
    security: dict[str, Any] = {
        "runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    container = {
        "name": "probe", "image": installed.operator_image, "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", ASK, address, str(port)], "securityContext": security,
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }  # fmt: skip
    run("removing an earlier probe", "delete", "pod", name, "-n", namespace, "--ignore-not-found", seconds=60)
    run("sending a probe", "apply", "-f", "-", stdin=json.dumps(pod))
    done = "--for=jsonpath={.status.phase}=Succeeded"
    run("waiting for the probe", "wait", done, f"pod/{name}", "-n", namespace, "--timeout=60s", seconds=70)
    found = run("reading the probe", "logs", name, "-n", namespace).strip()
    run("removing the probe", "delete", "pod", name, "-n", namespace, "--grace-period=0", "--force", seconds=60)
    return found
