"""What `helm test` runs, with the operator's rights."""

import os
import subprocess
import sys

from tests.operator.control_plane import ADMIN_TOKEN, OPERATOR_TOKEN, ControlPlane, free_port
from tests.operator.operator_process import ROOT, OperatorProcess


def check(plane: ControlPlane, token: str = OPERATOR_TOKEN, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("crds", "operator")),
        "KUBECONFIG": str(plane.kubeconfig(token)),
        "SIMPLERL_TRAINER_IMAGE": "none",
        **environment,
    }
    words = [sys.executable, "-m", "simplerl_operator.installation"]
    return subprocess.run(words, env=given, capture_output=True, text=True, timeout=60, check=False)


def test_a_sound_installation_passes(plane: ControlPlane, operator: OperatorProcess) -> None:
    url = f"http://127.0.0.1:{operator.port}"
    done = check(plane, SIMPLERL_OPERATOR_URL=url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "simplerljobs.simplerl.io can be read in all namespaces",
        "rayclusters.ray.io can be read in all namespaces",
        f"the operator at {url} is well",
    ]
    assert "can be read in default" in check(plane, SIMPLERL_NAMESPACES="default").stdout


def test_an_operator_that_does_not_answer_is_named(plane: ControlPlane) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = check(plane, ADMIN_TOKEN, SIMPLERL_OPERATOR_URL=url)
    assert done.returncode == 1
    assert done.stderr.startswith(f"the operator at {url} does not answer: ")


def test_an_api_server_that_does_not_answer_is_named(plane: ControlPlane) -> None:
    done = check(plane, "nobody-of-the-tests")
    assert done.returncode == 1
    assert done.stderr.startswith(f"the API server {plane.url} does not answer: ")
