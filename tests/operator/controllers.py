"""Real controllers beside the bare control plane, as processes: KubeRay, Kueue and Kubernetes' garbage collector. What
is left to the test is the kubelet: pods are pending until it says otherwise."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hack.cluster import programs as cluster_programs
from tests.operator import programs
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually, free_port

from simplerl_api import yaml12


class Controllers:
    """The controllers of one control plane; each is started by a method."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._kueue_health = 0

    def kuberay(self, namespaces: Sequence[str] = ()) -> None:
        """KubeRay's operator, with all of its definitions; `namespaces`: where it acts; none: everywhere."""
        self._apply(module("kuberay") / "config/crd/bases")
        health = free_port()
        self._spawn("kuberay", "--enable-leader-election=false", f"--watch-namespace={','.join(namespaces)}",
                    f"--metrics-addr=127.0.0.1:{free_port()}",
                    f"--health-probe-bind-address=127.0.0.1:{health}")  # fmt: skip
        self._healthy("kuberay", health)

    def garbage_collector(self, *others: str) -> None:
        """What deletes the dependents of what was deleted; with other controllers of Kubernetes beside it."""
        controllers = ",".join(("garbage-collector-controller", *others))
        self._spawn("kube-controller-manager", f"--controllers={controllers}", "--leader-elect=false",
                    f"--kubeconfig={self._plane.kubeconfig(ADMIN_TOKEN)}", "--secure-port=0")  # fmt: skip

    def install_kueue(self) -> None:
        """Kueue with the integration of RayClusters alone, and its webhooks by URL; definitions and webhooks are those
        of its module."""
        self._apply(module("kueue") / "config/components/crd/bases")
        self._kueue_health, webhook = free_port(), free_port()
        configuration = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": self._plane.namespace("kueue-system"),
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._kueue_health}"},
            "metrics": {"bindAddress": "0"},
            # the control plane's own certificate is one for 127.0.0.1
            "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(self._plane.folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": ["ray.io/raycluster"]},
            "featureGates": {"VisibilityOnDemand": False},
        }
        (self._folder / "kueue.yaml").write_text(json.dumps(configuration))
        self.kueue()
        for document in yaml12.load_all((module("kueue") / "config/components/webhook/manifests.yaml").read_text()):
            document["webhooks"] = [self._by_url(hook, webhook) for hook in document["webhooks"] if _wanted(hook)]
            plural = document["kind"].lower() + "s"
            name = document["metadata"]["name"]
            self._plane.apply(f"/apis/admissionregistration.k8s.io/v1/{plural}/{name}", document)

    def kueue(self) -> None:
        """Starts Kueue, once it is installed.

        Without its own certificates it looks for those of its metrics in a fixed folder, also where metrics are off
        (cmd/kueue/main.go): it gets an /etc of its own, with the control plane's certificate there.
        """
        certificates = self._folder / "etc/kueue/metrics/certs"
        certificates.mkdir(parents=True, exist_ok=True)
        for name in ("tls.crt", "tls.key"):
            shutil.copyfile(self._plane.folder / name, certificates / name)
        apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        script = 'mount --bind "$1" /etc && shift && exec "$@"'
        self._spawn("kueue", f"--config={self._folder}/kueue.yaml", "--zap-log-level=2",
                    before=[*apart, "bash", "-c", script, "_", f"{self._folder}/etc"])  # fmt: skip
        self._healthy("kueue", self._kueue_health)

    def stop(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait(10)

    def stop_all(self) -> None:
        for name in list(self._running):
            self.stop(name)

    def _by_url(self, hook: dict[str, Any], port: int) -> dict[str, Any]:
        path = hook["clientConfig"]["service"]["path"]
        kubeconfig = json.loads(self._plane.kubeconfig(ADMIN_TOKEN).read_text())
        authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
        return {**hook, "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}}

    def _apply(self, path: Path) -> None:
        """Applies a folder of definitions, named GROUP_PLURAL.yaml, and waits until all are served."""
        kubeconfig = self._plane.kubeconfig(ADMIN_TOKEN)
        command = [programs.path("kubectl"), f"--kubeconfig={kubeconfig}", "apply", "--server-side", "-f", path]
        subprocess.run([str(word) for word in command], check=True, timeout=120, stdout=subprocess.DEVNULL)
        group = next(path.iterdir()).stem.partition("_")[0]
        plurals = {file.stem.partition("_")[2] for file in path.iterdir()}
        eventually(f"the definitions of {group}", lambda: plurals <= self._served(group), 60)

    def _served(self, group: str) -> set[str]:
        found = self._plane.find(f"/apis/{group}")
        versions = [version["groupVersion"] for version in found["versions"]] if found else []
        # a group may list a version a moment before it is served
        documents = [self._plane.find(f"/apis/{version}") or {"resources": []} for version in versions]
        return {resource["name"] for document in documents for resource in document["resources"]}

    def _spawn(self, name: str, *arguments: str, before: Sequence[str] = ()) -> None:
        environment = {**os.environ, "KUBECONFIG": str(self._plane.kubeconfig(ADMIN_TOKEN))}
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*before, str(programs.path(name)), *arguments], env=environment, stdout=log, stderr=log
            )

    def _healthy(self, name: str, port: int) -> None:
        def answers() -> bool:
            log = self._folder / f"{name}.log"
            assert self._running[name].poll() is None, f"{name} ended: {log.read_text()[-3000:]}"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as response:
                    return bool(response.status == 200)
            except OSError:
                return False

        eventually(name, answers, 60)


def module(program: str) -> Path:
    """A program's source, with its definitions."""
    return cluster_programs.module_folder(cluster_programs.BY_NAME[program])


def _wanted(hook: dict[str, Any]) -> bool:
    """Kueue's own objects, and RayClusters."""
    (rule,) = hook["rules"]
    return rule["apiGroups"] == ["kueue.x-k8s.io"] or rule["resources"] == ["rayclusters"]
