"""The cluster that the demo runs in: the embedded one, or that of the current kubectl context."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.cluster import commands, places
from hack.cluster.errors import ClusterError


@dataclass(frozen=True)
class Target:
    """A cluster, by the programs and files that reach it."""

    kubectl: str
    helm: str
    kubeconfig: str | None
    embedded: bool

    def environment(self) -> dict[str, str]:
        """What kubectl and helm need to find the cluster."""
        return {"KUBECONFIG": self.kubeconfig} if self.kubeconfig else {}

    def run(self, doing: str, *words: str, stdin: str | None = None, seconds: float = 60) -> str:
        """kubectl's output."""
        return commands.run([self.kubectl, *words], doing, stdin=stdin, seconds=seconds, environment=self.environment())

    def apply(self, doing: str, *manifests: dict[str, Any]) -> None:
        """Applies manifests."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.run(doing, "apply", "-f", "-", stdin=json.dumps(document))

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """An object, or None where it is not there."""
        text = self.run(
            f"reading {kind} {name}", "get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found"
        )
        return json.loads(text) if text.strip() else None


def find() -> Target:
    """The cluster that `CLUSTER` names: embedded (started where it is down) or current."""
    which = os.environ.get("CLUSTER", "embedded")
    if which == "embedded":
        from hack.cluster import cluster

        cluster.up()
        return Target(
            str(places.PROGRAMS / "kubectl"), str(places.PROGRAMS / "helm"), str(places.KUBECONFIG), embedded=True
        )
    if which != "current":
        raise ClusterError(f"CLUSTER is {which}: use embedded or current")
    for program in ("kubectl", "helm"):
        if shutil.which(program) is None:
            raise ClusterError(f"CLUSTER=current needs {program} on PATH: install it")
    target = Target("kubectl", "helm", None, embedded=False)
    if not target.run("looking for KubeRay", "get", "crd", "rayclusters.ray.io", "--ignore-not-found", "-o", "name"):
        raise ClusterError(
            "the current cluster has no KubeRay: install the kuberay-operator chart, version 1.6.1 or later"
        )
    return target


def programs_folder() -> Path:
    """Where the embedded cluster's kubectl and helm are, for people's own use."""
    return places.PROGRAMS
