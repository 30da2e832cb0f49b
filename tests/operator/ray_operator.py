"""KubeRay itself as a process: the program and the CRDs of its module, acting on a few namespaces of the bare control
plane. Nothing schedules or runs the pods that it makes."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from hack.cluster.programs import BY_NAME, module_folder
from tests.operator import programs
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually


class RayOperator:
    """One KubeRay."""

    def __init__(self, plane: ControlPlane, folder: Path, namespaces: Sequence[str]) -> None:
        self._plane = plane
        self._namespaces = namespaces
        self.log = folder / "kuberay.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        crds = module_folder(BY_NAME["kuberay"]) / "config/crd/bases"
        kubeconfig = self._plane.kubeconfig(ADMIN_TOKEN)
        subprocess.run(
            [str(programs.path("kubectl")), f"--kubeconfig={kubeconfig}", "apply", "--server-side",
             "--force-conflicts", "-f", str(crds)],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        for plural in ("rayjobs", "rayservices"):
            eventually(plural, lambda plural=plural: self._plane.find(f"/apis/ray.io/v1/{plural}"), 30)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(programs.path("kuberay")), f"-kubeconfig={kubeconfig}", "-enable-leader-election=false",
                 f"-watch-namespace={','.join(self._namespaces)}", "-metrics-addr=0", "-health-probe-bind-address=0"],
                stdout=log, stderr=log,
            )  # fmt: skip

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
