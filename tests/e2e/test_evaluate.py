"""A job of no steps in real pods: it evaluates, and ends."""

import pytest
from tests.e2e.conftest import Installed
from tests.e2e.drill import ROOT, Drill

pytestmark = pytest.mark.long


def test_a_job_of_no_steps_ends_with_its_accuracies(installed: Installed) -> None:
    job = Drill(installed.cluster, "tiny-evaluate")
    job.delete()
    file = str(ROOT / "examples/tiny-evaluate.yaml")
    installed.cluster.run("applying the job", "apply", "-n", "default", "-f", file)
    try:
        status = job.until("the end", lambda s: s.get("phase") == "Succeeded", 400)
    finally:
        job.delete()
    (found,) = status["evaluations"]
    assert found["dataset"] == "held-out"
    assert found["first"] == found["last"] == found["best"]
    assert found["last"]["step"] == 0
    assert 0.25 <= found["last"]["accuracy"] <= 0.40, "as much as the tiny model knows before it is trained"
    assert status["summary"]["eval"] == f"held-out {found['last']['accuracy']:.2f}"
    assert "checkpoint" not in status
    assert "model" not in status
