"""The whole life of examples/tiny.yaml in real pods, with the operator killed in the middle."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hack.cluster import places
from tests.e2e.conftest import Installed
from tests.e2e.watching import Watch, condition, phase, step

ROOT = Path(__file__).parents[2]
ORDER = ["", "Pending", "Provisioning", "Starting", "Training", "Succeeded"]


@pytest.fixture(scope="module")
def life(installed: Installed) -> dict[str, Any]:
    """The job's versions, and what was seen around the death of the operator."""
    cluster = installed.cluster
    cluster.run("applying the job", "apply", "-f", str(ROOT / "examples/tiny.yaml"))
    with Watch(cluster, "tiny") as watch:
        training = watch.until("a third step", lambda j: step(j) >= 3, 420)
        before = _pods(installed)
        operator = _operator_pods(installed)
        cluster.run(
            "killing the operator", "delete", "pod", "-n", "simplerl-system", "--all", "--grace-period=0", "--force"
        )
        watch.until("five more steps", lambda j: step(j) >= step(training) + 5, 240)
        after = _pods(installed)
        assert _operator_pods(installed) != operator
        done = watch.until("the end", lambda j: phase(j) in ("Succeeded", "Failed"), 900)
        seen = list(watch.seen)
    return {"done": done, "seen": seen, "before": before, "after": after, "training": training}


def _pods(installed: Installed) -> dict[str, str]:
    text = installed.cluster.run(
        "listing pods", "get", "pods", "-n", "default", "-l", "simplerl.io/job=tiny", "-o", "json"
    )
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in json.loads(text)["items"]}


def _operator_pods(installed: Installed) -> list[str]:
    text = installed.cluster.run("listing pods", "get", "pods", "-n", "simplerl-system", "-o", "json")
    return [p["metadata"]["uid"] for p in json.loads(text)["items"]]


def test_it_succeeds_with_the_accuracy_before_and_after_on_the_object(life: dict[str, Any]) -> None:
    status = life["done"]["status"]
    assert status["phase"] == "Succeeded", status
    result = status["evaluations"][0]
    assert result["first"]["step"] == 0
    assert result["last"]["step"] == status["training"]["totalSteps"]
    assert result["last"]["accuracy"] >= 0.70
    assert result["last"]["accuracy"] >= 2 * result["first"]["accuracy"]
    assert 0.25 <= result["first"]["accuracy"] <= 0.40


def test_phases_come_in_their_order_and_steps_never_fall(life: dict[str, Any]) -> None:
    phases = [phase(j) for j in life["seen"]]
    changes = [p for i, p in enumerate(phases) if i == 0 or p != phases[i - 1]]
    assert changes == [p for p in ORDER if p in changes]
    assert {"Provisioning", "Training", "Succeeded"} <= set(changes)
    steps = [step(j) for j in life["seen"]]
    assert steps == sorted(steps)


def test_killing_the_operator_leaves_the_cluster_its_pods_and_the_submission(life: dict[str, Any]) -> None:
    assert len(life["before"]) == 4
    assert life["after"] == life["before"]
    before, after = life["training"]["status"]["cluster"], life["done"]["status"]["cluster"]
    assert (before["name"], before["uid"], before["submissionId"]) == (
        after["name"],
        after["uid"],
        after["submissionId"],
    )


def test_ranks_and_engine_ran_in_pods_of_their_own(life: dict[str, Any]) -> None:
    plan = life["done"]["status"]["plan"]
    assert (plan["nodes"], plan["ranks"], plan["engines"], plan["placement"]) == (3, 2, 1, "Disaggregated")


def test_log_probabilities_of_engine_and_ranks_agree_after_every_sync(life: dict[str, Any]) -> None:
    rows = [json.loads(line) for line in (_output(life) / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows] == list(range(1, life["done"]["status"]["training"]["totalSteps"] + 1))
    assert max(r["mismatch_max"] for r in rows) < 1e-4


def test_kstatus_conditions_end_true(life: dict[str, Any]) -> None:
    done = life["done"]
    assert {c: condition(done, c).get("status") for c in ("Accepted", "Succeeded", "Ready")} == {
        "Accepted": "True",
        "Succeeded": "True",
        "Ready": "True",
    }
    assert done["status"]["observedGeneration"] == done["metadata"]["generation"]


def test_the_raycluster_is_removed_at_the_end(life: dict[str, Any], installed: Installed) -> None:
    name = life["done"]["status"]["cluster"]["name"]
    installed.cluster.run(
        "waiting for the end of the cluster", "wait", "--for=delete", f"raycluster/{name}", "--timeout=60s"
    )


def test_the_learning_rate_on_the_object_is_the_file_s(life: dict[str, Any]) -> None:
    assert life["done"]["spec"]["training"]["actor"]["learningRate"] == 2e-4


def test_a_change_after_the_start_is_refused_with_a_sentence(life: dict[str, Any], installed: Installed) -> None:
    from hack.cluster.errors import ClusterError

    patch = '{"spec": {"training": {"steps": 99}}}'
    with pytest.raises(ClusterError, match="fixed once the job has started"):
        installed.cluster.run(
            "changing the job", "patch", "simplerljobs", "tiny", "-n", "default", "--type=merge", "-p", patch
        )


def test_the_exported_model_is_as_good_by_a_plain_script(life: dict[str, Any]) -> None:
    claimed = life["done"]["status"]["evaluations"][0]["last"]["accuracy"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/e2e/plain_eval.py"), str(_output(life) / "model"), "800"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    accuracy = float(done.stdout)
    # 1600 and 800 sampled answers: three standard errors of the difference
    spread = 3 * math.sqrt(claimed * (1 - claimed) / 1600 + accuracy * (1 - accuracy) / 800)
    assert abs(accuracy - claimed) <= spread, (accuracy, claimed)


def _output(life: dict[str, Any]) -> Path:
    uid = life["done"]["metadata"]["uid"].replace("-", "")[:8]
    return places.VOLUMES / "tiny" / "default" / f"tiny-{uid}"
