"""The ordinary life of a job, against a real API server."""

import base64
import json
import re
import time
from pathlib import Path

from tests.operator import documents
from tests.operator.control_plane import OPERATOR_USER, ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

from simplerl_api.progress import Progress
from simplerl_api.run import ENTRYPOINT, Run

ROOT = Path(__file__).parents[2]


def test_a_job_is_accepted_provisioned_submitted_trained_and_its_cluster_removed(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.cluster()
    status = life.reaches("Provisioning", "WaitingForPods")
    assert status["plan"]["nodes"] == 3
    assert status["plan"]["image"] == "registry.example/trainer:1"
    assert status["startTime"] == status["attemptStartTime"]
    assert status["attempt"] == 1
    assert life.condition("Accepted")["status"] == "True"
    assert life.condition("Reconciling")["status"] == "True"
    assert cluster.document["metadata"]["ownerReferences"][0]["uid"] == life.uid

    pods = cluster.make_pods()
    cluster.head_ready("False", "ContainersNotReady")
    cluster.ready(pods[0])
    eventually("the count of ready pods", lambda: life.condition("Ready").get("message") == "1 of 4 pods are ready")
    life.head.progress = documents.progress(life.cluster_name)
    for pod in pods[1:]:
        cluster.ready(pod)
    status = life.reaches("Starting", "DriverStarting")
    assert life.head.submissions == [
        {"entrypoint": ENTRYPOINT, "submission_id": life.cluster_name, "entrypoint_num_cpus": 0}
    ]
    assert status["cluster"]["readyWorkers"] == 3
    assert status["cluster"]["submissionId"] == life.cluster_name
    assert status["cluster"]["headService"] == f"{life.cluster_name}-head-svc"
    assert life.condition("ClusterReady")["status"] == "True"

    life.head.say(state="Training", evaluations=[documents.evaluation("held-out", 0.34, 0.34, 0)])
    status = life.reaches("Training", "Training")
    assert life.condition("Ready")["status"] == "True"
    for step in (1, 2, 37):
        life.head.say(step=step, metrics={"reward": 0.41 + step / 1000, "kl": 5e-7}, etaSeconds=100.0)
        eventually(f"step {step}", lambda step=step: life.status["training"]["step"] == step)
    assert life.status["summary"] == {
        "step": "37/60",
        "progress": "61%",
        "reward": "0.45",
        "eval": "held-out 0.34",
        "duration": "",
        "model": "tiny",
    }
    assert life.status["training"]["metrics"] == {"kl": 5e-7, "reward": 0.447}

    life.head.say(
        state="Succeeded",
        step=60,
        evaluations=[documents.evaluation("held-out", 0.34, 0.78, 60)],
        checkpoint={"step": 60, "path": "/checkpoints/x"},
        model={"path": "/checkpoints/x/model"},
        versions={"trainer": "0.1.0", "vllm": "0.32.0", "deepspeed": "0.19.8", "ray": "2.60.0", "torch": "2.13.0"},
    )
    status = life.reaches("Succeeded", "Completed")
    assert status["evaluations"][0]["last"] == {"step": 60, "accuracy": 0.78}
    assert status["evaluations"][0]["first"] == {"step": 0, "accuracy": 0.34}
    assert status["model"] == {"path": "/checkpoints/x/model"}
    assert status["versions"]["vllm"] == "0.32.0"
    assert status["summary"]["duration"]
    assert status["attempts"] == [
        {"number": 1, "reason": "Completed", "message": "all 60 steps are done", "lastStep": 60, "terminations": []}
    ]
    by_type = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
    assert by_type == {
        "Accepted": ("True", "Accepted"),
        "ClusterReady": ("False", "Released"),
        "Suspended": ("False", "NotSuspended"),
        "Succeeded": ("True", "Completed"),
        "Ready": ("True", "Completed"),
        "Reconciling": ("False", "Completed"),
        "Stalled": ("False", "Completed"),
    }
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    reasons = [e["reason"] for e in sorted(life.events(), key=lambda e: e["metadata"]["resourceVersion"].zfill(12))]
    assert reasons == ["NotDurable", "CreatingCluster", "Training", "Completed"]
    assert len(reasons) == len(set(reasons))


def test_a_job_of_no_steps_only_evaluates(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    file = {"name": "held-out", "file": "/data/held-out.jsonl"}
    training = documents.TINY["training"] | {"steps": 0}
    life = Life(plane, heads, namespace, "only-evaluates", training=training, evaluation={"datasets": [file]})
    life.submitted()
    life.head.say(state="Training", totalSteps=0)
    assert life.reaches("Training", "Training")["training"]["progressPercent"] == 0
    life.head.say(state="Succeeded", totalSteps=0, evaluations=[documents.evaluation("held-out", 0.5, 0.5, 0)])
    status = life.reaches("Succeeded", "Completed")
    assert life.condition("Succeeded")["message"] == "the evaluation is done"
    assert status["training"]["progressPercent"] == 100
    assert (status["summary"]["step"], status["summary"]["progress"]) == ("0/0", "100%")
    assert status["summary"]["eval"] == "held-out 0.50"
    assert status["evaluations"][0]["first"] == {"step": 0, "accuracy": 0.5}


def test_the_token_and_the_run_are_what_the_pods_get(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.submitted()
    core = f"/api/v1/namespaces/{namespace}"
    secret_name = life.cluster_name.removesuffix("-1")
    secret = plane.find(f"{core}/secrets/{secret_name}")
    token = base64.b64decode(secret["data"]["auth_token"]).decode()
    assert life.head.tokens == {token}
    assert secret["metadata"]["ownerReferences"][0]["uid"] == life.uid
    assert cluster.document["spec"]["authOptions"] == {"mode": "token", "secretName": secret_name}

    config_map = plane.find(f"{core}/configmaps/{life.cluster_name}")
    assert config_map["immutable"] is True
    run = Run.model_validate_json(config_map["data"]["run.json"])
    assert run.submission_id == life.cluster_name
    assert run.plan.engines == 1
    assert run.output == f"/checkpoints/{namespace}/tiny-{life.uid.replace('-', '')[:8]}"
    assert json.loads(config_map["data"]["run.json"])["spec"]["model"] == {"tiny": {"seed": 0, "warmupAccuracy": 0.33}}


def test_a_driver_that_fails_leaves_its_reason_and_last_lines_on_the_object(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.training()
    life.head.say(
        state="Failed",
        step=3,
        failure={"reason": "NonFinite", "message": "three optimizer steps in a row had infinite gradients"},
        log=["line 1", "line 2"],
    )
    status = life.reaches("Failed", "NonFinite")
    assert status["failure"] == {
        "reason": "NonFinite",
        "message": "three optimizer steps in a row had infinite gradients",
        "log": "line 1\nline 2",
    }
    assert life.condition("Stalled")["status"] == "True"
    assert status["attempts"][0]["lastStep"] == 3
    eventually("the RayCluster to go", lambda: cluster.find() is None)


def test_a_last_document_that_was_not_read_in_time_is_found_in_the_log(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    last = documents.progress(
        life.cluster_name,
        state="Succeeded",
        step=60,
        evaluations=[documents.evaluation("held-out", 0.34, 0.8, 60)],
    )
    Progress.model_validate(last)
    life.head.log = "\n".join(
        [json.dumps({"event": "step", "step": 60}), json.dumps({"event": "final", "progress": last})]
    )
    life.head.jobs[life.cluster_name] = {"status": "SUCCEEDED", "message": "", "driver_exit_code": 0}
    life.head.progress = None
    status = life.reaches("Succeeded", "Completed")
    assert status["training"]["step"] == 60
    assert status["evaluations"][0]["last"]["accuracy"] == 0.8


def test_restarting_the_operator_in_the_middle_changes_nothing(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.training()
    life.head.say(step=5, metrics={"reward": 0.5})
    eventually("step 5", lambda: life.status["training"]["step"] == 5)
    before, since = plane.find(life.path), plane.audit_length()
    life.head.polls = 0
    operator.kill()
    operator.start()
    eventually("the driver to be followed again", lambda: life.head.polls >= 2)
    life.head.say(step=6, metrics={"reward": 0.6})
    eventually("step 6", lambda: life.status["training"]["step"] == 6)
    writes = plane.writes(OPERATOR_USER, namespace, since)
    assert [(w["verb"], w["objectRef"]["resource"], w["objectRef"].get("subresource")) for w in writes] == [
        ("patch", "simplerljobs", "status")
    ]
    after = plane.find(life.path)
    assert after["status"]["cluster"] == before["status"]["cluster"]
    assert after["status"]["conditions"] == before["status"]["conditions"]
    assert cluster.find()["metadata"]["uid"] == cluster.document["metadata"]["uid"]
    assert len(life.head.submissions) == 1


def test_restarting_the_operator_while_pods_are_pending_writes_nothing(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.cluster()
    pods = cluster.make_pods()
    cluster.waiting(pods[1], "ErrImagePull", "not found")
    life.reaches("Provisioning", "ImagePullFailed")
    operator.kill()
    since = plane.audit_length()
    cluster.waiting(pods[1], "ImagePullBackOff", "Back-off pulling image")
    operator.start()
    eventually(
        "the operator's first looks", lambda: "simplerl_reconcile_seconds_count 0.0" not in operator.get("/metrics")[1]
    )
    time.sleep(1)
    assert plane.writes(OPERATOR_USER, namespace, since) == []


def test_an_operator_that_begins_anew_again_and_again_ends_a_run_that_stands_still(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    recovery = {"backoffLimit": 0, "stallTimeoutSeconds": 20}
    life = Life(plane, heads, namespace, recovery=recovery)
    life.training()
    began = time.monotonic()
    for _ in range(2):
        time.sleep(6)
        operator.kill()
        operator.start()
        assert life.status["phase"] == "Training"
    status = life.reaches("Failed", "Stalled", seconds=30 - (time.monotonic() - began))
    assert status["failure"]["message"] == "nothing moved for 20 s (spec.recovery.stallTimeoutSeconds)"


def test_an_operator_that_dies_between_two_writes_goes_on_where_it_was(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    lives = []
    for i in range(6):
        lives.append(Life(plane, heads, namespace, f"job-{i}"))
        time.sleep(0.02 * i)
        operator.kill()
        operator.start()
    for life in lives:
        life.training()
        assert len(life.head.submissions) == 1


def test_a_job_that_is_being_deleted_releases_its_cluster_and_makes_nothing(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 14 (kuberay#4721): children made while the job is being deleted
    life = Life(plane, heads, namespace)
    cluster = life.training()
    # the Event follows the status
    eventually("the Event", lambda: "Training" in [event["reason"] for event in life.events()])
    plane.merge(life.path, {"metadata": {"finalizers": ["example.com/somebody-elses"]}})
    since = plane.audit_length()
    plane.request("DELETE", life.path)
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    plane.merge(life.path, {"metadata": {"annotations": {"look": "again"}}})
    plane.merge(life.path, {"metadata": {"finalizers": None}})
    eventually("the job to go", lambda: plane.find(life.path) is None)
    assert {w["verb"] for w in plane.writes(OPERATOR_USER, namespace, since)} == {"delete"}


def test_a_job_made_again_under_its_name_has_a_cluster_of_its_own(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 15 (kueue PR#926): a job made again meets the old one's objects
    first = Life(plane, heads, namespace)
    first.training()
    plane.request("DELETE", first.path)
    eventually("the job to go", lambda: plane.find(first.path) is None)
    second = Life(plane, heads, namespace)
    assert second.cluster_name != first.cluster_name
    second.training()


def test_health_and_metrics_are_served(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    assert operator.get("/healthz") == (200, "ok\n")
    text = operator.get("/metrics")[1]
    assert f'simplerl_jobs{{namespace="{namespace}",phase="Training"}} 1.0' in text
    assert 'simplerl_api_requests_total{code="201",resource="rayclusters",verb="create"}' in text
    for series in (
        "simplerl_reconcile_seconds_count",
        "simplerl_reconcile_errors_total",
        "simplerl_queue_depth",
        "simplerl_queue_oldest_seconds",
        "simplerl_lease_held 1.0",
        "simplerl_healthy 1.0",
        "simplerl_status_writes_total",
    ):
        assert series in text
    told = {name for name in re.findall(r"^# TYPE (simplerl_\w+) ", text, re.MULTILINE) if "_created" not in name}
    page = (ROOT / "docs/monitoring.md").read_text()
    assert told == set(re.findall(r"^\| `(simplerl_\w+)", page, re.MULTILINE)), "docs/monitoring.md lists them all"
    plane.request("DELETE", life.path)
    gone = f'simplerl_jobs{{namespace="{namespace}"'
    eventually("the series to go with the job", lambda: gone not in operator.get("/metrics")[1])


def test_no_finalizer_and_no_annotation_is_left_on_the_job(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    metadata = plane.find(life.path)["metadata"]
    assert "finalizers" not in metadata
    assert "annotations" not in metadata


def test_the_pods_keep_to_the_restricted_standard_in_the_api_servers_eyes(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": enforce}})
    Life(plane, heads, namespace).training()


def test_the_columns_read(plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    life.head.say(step=3, metrics={"reward": 0.5})
    eventually("step 3", lambda: life.status["training"]["step"] == 3)
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    rows = plane.request("GET", f"{life.path}", accept=table)
    columns = [c["name"] for c in rows["columnDefinitions"]]
    cells = dict(zip(columns, rows["rows"][0]["cells"], strict=True))
    cells.pop("Age")
    assert cells == {
        "Name": "tiny",
        "Phase": "Training",
        "Step": "3/60",
        "Progress": "5%",
        "Reward": "0.50",
        "Eval": "held-out 0.34",
        "Duration": "",
        "Reason": "Training",
        "Model": "tiny",
        "GPUs": 3,
        "Cluster": life.cluster_name,
    }
