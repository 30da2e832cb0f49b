"""The operator as a process of its own, with the rights of the chart."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.operator import programs
from tests.operator.control_plane import OPERATOR_TOKEN, ControlPlane, eventually, free_port

from simplerl_api import yaml12

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/simplerl-operator"


def grant(plane: ControlPlane) -> None:
    """Gives the operator the rights that the chart gives it, and no more."""
    plane.namespace("simplerl-system")
    rendered = subprocess.run(
        [str(programs.path("helm")), "template", "simplerl-operator", str(CHART), "--namespace=simplerl-system"],
        check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    for document in yaml12.load_all(rendered):
        if document["kind"] in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
            namespace = document["metadata"].get("namespace")
            where = f"/namespaces/{namespace}" if namespace else ""
            plural = document["kind"].lower() + "s"
            path = f"/apis/rbac.authorization.k8s.io/v1{where}/{plural}/{document['metadata']['name']}"
            plane.apply(path, document)


class OperatorProcess:
    """Starts, stops and asks `python -m simplerl_operator`."""

    def __init__(self, plane: ControlPlane, folder: Path, head_address: str, **environment: str) -> None:
        self.port = free_port()
        self.log = folder / "operator.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SIMPLERL_", "KUBERNETES_"))},
            "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("crds", "operator")),
            "KUBECONFIG": str(plane.kubeconfig(OPERATOR_TOKEN)),
            "OPERATOR_NAMESPACE": "simplerl-system",
            "SIMPLERL_TRAINER_IMAGE": "registry.example/trainer:1",
            "SIMPLERL_HEAD_ADDRESS": head_address,
            "SIMPLERL_HTTP_PORT": str(self.port),
            "SIMPLERL_FIGURES_SECONDS": "0.2",
            "SIMPLERL_IDENTITY": "operator-0",  # a pod's name stays when its container comes back
            "SIMPLERL_NETWORK_POLICY": '{"metricsFrom": [{"podSelector": {}}]}',
            **environment,
        }

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, standby: bool = False) -> None:
        """Until it works, or is `standby` while another holds the Lease."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "simplerl_operator"], env=self._environment, stdout=log, stderr=log
            )
        eventually("the operator", lambda: self._says("ok, while" if standby else "ok\n"), 30)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)

    def send(self, number: signal.Signals) -> None:
        if self.running and self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Ends it in the middle of whatever it does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(5)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def _says(self, beginning: str) -> bool:
        assert self.running, f"the operator ended: {self.log.read_text()[-3000:]}"
        try:
            return self.get("/healthz")[1].startswith(beginning)
        except OSError:
            return False
