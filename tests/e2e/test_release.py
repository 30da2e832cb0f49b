"""The chart in real pods: `helm test`, and its removal under a running job."""

from collections.abc import Iterator

import pytest
from hack.cluster import commands
from hack.demo import install, volumes
from tests.e2e import drill as drills
from tests.e2e.conftest import Installed
from tests.e2e.drill import Drill, step

pytestmark = pytest.mark.long


@pytest.fixture
def job(installed: Installed) -> Iterator[Drill]:
    """A job that trains."""
    if not installed.cluster.embedded:
        pytest.skip("the release of somebody's cluster is not taken away")
    found = Drill(installed.cluster, "release")
    found.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    found.apply()
    found.until("two steps", lambda s: step(s) >= 2)
    yield found
    found.delete()


def helm(installed: Installed, doing: str, *words: str, seconds: float) -> str:
    command = [installed.cluster.helm, *words, "-n", install.NAMESPACE]
    return commands.run(command, doing, seconds=seconds, environment=installed.cluster.environment())


def test_helm_test_is_content(installed: Installed) -> None:
    try:
        said = helm(installed, "testing the release", "test", install.RELEASE, "--logs", seconds=150)
    finally:
        pod = ("delete", "pod", f"{install.RELEASE}-test", "-n", install.NAMESPACE, "--ignore-not-found")
        installed.cluster.run("removing the test's pod", *pod)
    assert "simplerljobs.simplerl.io can be read in all namespaces" in said
    assert "rayclusters.ray.io can be read in all namespaces" in said
    assert f"the operator at http://{install.RELEASE}-metrics.{install.NAMESPACE}.svc:8080 is well" in said


def test_a_running_job_outlives_the_release(installed: Installed, job: Drill) -> None:
    cluster = installed.cluster
    before, pods = job.status, uids(job)
    helm(installed, "removing the release", "uninstall", install.RELEASE, "--wait", "--timeout=120s", seconds=150)
    try:
        assert cluster.get("deployment", install.RELEASE, install.NAMESPACE) is None
        done = len(job.steps())
        commands.wait_for("three more steps", lambda: len(job.steps()) >= done + 3, 180, every=2)
        assert uids(job) == pods
        assert step(job.status) <= done, "nobody writes the job's status"
        namespace = cluster.get("namespace", "default", "default")
        assert namespace is not None
        assert namespace["status"]["phase"] == "Active"
        crd = cluster.get("crd", "simplerljobs.simplerl.io", "default")
        assert crd is not None
        assert "deletionTimestamp" not in crd["metadata"]
    finally:
        install.operator(cluster, installed.operator_image, installed.trainer_image)
    # taken up again where it is, by the operator that came back
    after = job.until("the steps done meanwhile", lambda s: step(s) >= done + 3, 120)
    assert (after["attempt"], after["cluster"]["uid"]) == (before["attempt"], before["cluster"]["uid"])
    assert uids(job) == pods


def uids(job: Drill) -> set[str]:
    return {pod["metadata"]["uid"] for pod in job.pods()}
