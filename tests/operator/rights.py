"""The rights that the chart gives the operator."""

import subprocess
from pathlib import Path

from tests.operator import programs
from tests.operator.control_plane import ControlPlane

from simplerl_api import yaml12

CHART = Path(__file__).parents[2] / "charts/simplerl-operator"
_KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def grant(plane: ControlPlane) -> None:
    """Applies the chart's roles, and makes the operator's namespace."""
    plane.namespace("simplerl-system")
    rendered = subprocess.run(
        [str(programs.path("helm")), "template", "simplerl-operator", str(CHART), "--namespace=simplerl-system"],
        check=True, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    for document in yaml12.load_all(rendered):
        if document["kind"] in _KINDS:
            namespace = document["metadata"].get("namespace")
            where = f"/namespaces/{namespace}" if namespace else ""
            plural = document["kind"].lower() + "s"
            path = f"/apis/rbac.authorization.k8s.io/v1{where}/{plural}/{document['metadata']['name']}"
            plane.apply(path, document)
