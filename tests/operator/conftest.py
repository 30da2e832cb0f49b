"""A real API server, the operator with the chart's rights, and stand-ins for the heads of Ray clusters."""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.operator import operator_process, programs
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.operator_process import OperatorProcess

ROOT = Path(__file__).parents[2]
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with our CRD and KubeRay's."""
    control_plane = ControlPlane(
        tmp_path_factory.mktemp("control-plane"), programs.path("etcd"), programs.path("kube-apiserver")
    )
    try:
        control_plane.start()
        for crd in (ROOT / "crds/simplerljobs.yaml", programs.ray_cluster_crd()):
            subprocess.run(
                [str(programs.path("kubectl")), f"--kubeconfig={control_plane.kubeconfig(ADMIN_TOKEN)}", "apply",
                 "--server-side", "-f", str(crd)],
                check=True, timeout=60,
            )  # fmt: skip
        for kind in ("simplerl.io/v1alpha1/simplerljobs", "ray.io/v1/rayclusters"):
            eventually(kind, lambda kind=kind: control_plane.serves(f"/apis/{kind}"), 30)
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="session")
def heads() -> Iterator[Heads]:
    server = Heads()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def operator(plane: ControlPlane, heads: Heads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """The operator, with no more rights than the chart gives it."""
    operator_process.grant(plane)
    process = OperatorProcess(
        plane, tmp_path_factory.mktemp("operator"), f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}"
    )
    try:
        process.start()
        yield process
    finally:
        process.stop()


@pytest.fixture
def namespace(plane: ControlPlane) -> str:
    """A namespace of the test's own."""
    return plane.namespace(f"t{next(_numbers)}")
