"""A cluster without machines: etcd, API server, scheduler and garbage collector, KubeRay, and kwok, whose nodes run
nothing and say that everything on them is ready."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.operator import operator_process, programs
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually, free_port
from tests.operator.operator_process import OperatorProcess

ROOT = Path(__file__).parents[2]
_CRDS = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
_STAGES = ("node/fast/node-initialize.yaml", "pod/fast/pod-ready.yaml", "pod/fast/pod-delete.yaml")
_RATE = ("--kube-api-qps=500", "--kube-api-burst=1000")
WRITERS = 8
"""Objects that are created at the same time."""
KUBERAY_WORKERS = 8
"""Objects of a kind that KubeRay handles at the same time, where nothing else is said; its chart says 1."""


class Fleet:
    """The cluster and what runs beside it."""

    def __init__(self, folder: Path, kubelet: Sequence[Mapping[str, Any]], kuberay_workers: int) -> None:
        """`kubelet`: kwok's objects that say what its kubelets answer to logs and port-forward. `kuberay_workers`:
        objects of a kind that KubeRay handles at the same time."""
        self.folder = folder
        self._kuberay_workers = kuberay_workers
        self._kubelet = kubelet
        self.plane = ControlPlane(folder, programs.path("etcd"), programs.path("kube-apiserver"))
        self.heads_port = free_port()
        self.operator: OperatorProcess | None = None
        self._running: list[subprocess.Popen[bytes]] = []
        self._numbers = itertools.count(1)

    def start(self, nodes: int) -> None:
        """Up to the point where RayClusters come up."""
        self.plane.start()
        config = self.plane.kubeconfig(ADMIN_TOKEN)
        source = programs.ray_cluster_crd().parent
        crds = [ROOT / "crds/simplerljobs.yaml", *(source / f"ray.io_{name}.yaml" for name in _CRDS)]
        subprocess.run(
            [str(programs.path("kubectl")), f"--kubeconfig={config}", "apply", "--server-side",
             *(f"--filename={crd}" for crd in crds)],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        for api in ("simplerl.io/v1alpha1/simplerljobs", "ray.io/v1/rayclusters", "ray.io/v1/rayjobs"):
            eventually(api, lambda api=api: self.plane.serves(f"/apis/{api}"), 30)
        self.spawn("kube-scheduler", [
            programs.path("kube-scheduler"), f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", "--leader-elect=false", f"--secure-port={free_port()}",
            f"--cert-dir={self.folder}", *_RATE,
        ])  # fmt: skip
        self.spawn("kube-controller-manager", [
            programs.path("kube-controller-manager"), f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}", "--leader-elect=false",
            f"--secure-port={free_port()}", f"--cert-dir={self.folder}",
            "--controllers=garbage-collector-controller,namespace-controller", *_RATE,
        ])  # fmt: skip
        self.spawn("kuberay", [
            programs.path("kuberay"), f"--kubeconfig={config}", "--enable-leader-election=false",
            f"--metrics-addr=127.0.0.1:{free_port()}", f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            f"--reconcile-concurrency={self._kuberay_workers}", "--qps=500", "--burst=1000",
        ])  # fmt: skip
        for i in range(nodes):
            self._node(f"node-{i}")
        stages = programs.module_folder("kwok") / "kustomize/stage"
        parts = [*(stages / stage for stage in _STAGES), self.folder / "kubelet.yaml"]
        parts[-1].write_text("---\n".join(json.dumps(document) + "\n" for document in self._kubelet))
        port = free_port()
        self.spawn("kwok", [
            programs.path("kwok"), f"--kubeconfig={config}", "--manage-all-nodes", "--cidr=10.64.0.0/10",
            "--node-lease-duration-seconds=0", "--v=ERROR", *(f"--config={part}" for part in parts),
            "--node-ip=127.0.0.1", f"--node-port={port}", f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={self.folder}/tls.crt", f"--tls-private-key-file={self.folder}/tls.key",
        ])  # fmt: skip
        eventually("the nodes to be ready", lambda: self._ready_nodes() == nodes, 60)

    def start_operator(
        self, *, step_seconds: float, steps: int, starting_seconds: float = 1.0, **environment: str
    ) -> OperatorProcess:
        """The operator with the chart's rights, and the heads that it finds: how long their drivers take to start, and
        each of their steps."""
        operator_process.grant(self.plane)
        paths = os.pathsep.join(str(ROOT / folder) for folder in ("crds", "operator"))
        self.spawn(
            "heads",
            [sys.executable, "-m", "benchmarks.operator.heads", self.heads_port,
             f"--starting-seconds={starting_seconds}", f"--step-seconds={step_seconds}", f"--steps={steps}"],
            {**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        address = f"http://127.0.0.1:{self.heads_port}/{{namespace}}/{{cluster}}"
        self.operator = OperatorProcess(self.plane, self.folder, address, SIMPLERL_FIGURES_SECONDS="10", **environment)
        self.operator.start()
        return self.operator

    def namespace(self) -> str:
        return self.plane.namespace(f"fleet-{next(self._numbers)}")

    def create(self, path: str, documents: list[dict[str, Any]]) -> None:
        """Creates all objects, a few at a time."""
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda document: self.plane.request("POST", path, document), documents))

    def spawn(self, name: str, command: list[Any], environment: dict[str, str] | None = None) -> None:
        with (self.folder / f"{name}.err").open("wb") as log:
            words = [str(word) for word in command]
            self._running.append(subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=ROOT))

    def stop(self) -> None:
        if self.operator is not None and self.operator.running:
            self.operator.kill()
        for process in reversed(self._running):
            process.kill()
        for process in self._running:
            process.wait(10)
        self.plane.stop()

    def _node(self, name: str) -> None:
        room = {"cpu": "1000", "memory": "4Ti", "pods": "10000", "nvidia.com/gpu": "1000"}
        self.plane.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        self.plane.merge(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": room, "capacity": room}})
        # nobody takes the taint of new nodes away where the node controllers do not run
        self.plane.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def _ready_nodes(self) -> int:
        for process in self._running:
            if process.poll() is not None:
                logs = "\n".join(path.read_text()[-1000:] for path in sorted(self.folder.glob("*.err")))
                raise AssertionError(f"{process.args} ended: {logs}")
        nodes = self.plane.request("GET", "/api/v1/nodes")["items"]
        return sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))
            for node in nodes
        )


@contextmanager
def running(
    folder: Path, nodes: int, kubelet: Sequence[Mapping[str, Any]] = (), kuberay_workers: int = KUBERAY_WORKERS
) -> Iterator[Fleet]:
    """A fleet's cluster while the context is open."""
    fleet = Fleet(folder, kubelet, kuberay_workers)
    try:
        fleet.start(nodes)
        yield fleet
    finally:
        fleet.stop()
