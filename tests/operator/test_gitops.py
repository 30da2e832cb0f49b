"""GitOps tools beside the operator: a manifest that is applied again and again changes nothing, tools that compare see
no difference, and they read a live job's health right."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.deploy import health
from tests.deploy.test_health import HEALTH
from tests.operator import documents, programs
from tests.operator.control_plane import ADMIN_TOKEN, OPERATOR_USER, ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.life import JOBS, Life

from simplerl_api import yaml12

ROOT = Path(__file__).parents[2]
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/simplerljobs.simplerl.io"


def kubectl(plane: ControlPlane, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [str(programs.path("kubectl")), f"--kubeconfig={plane.kubeconfig(ADMIN_TOKEN)}", *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in codes, done.stderr + done.stdout
    return done.stdout


@pytest.mark.usefixtures("operator")
def test_a_manifest_that_is_applied_again_changes_nothing(
    plane: ControlPlane, heads: Heads, namespace: str, tmp_path: Path
) -> None:
    # complaints 21 and 23: nothing that the operator does makes a deploy tool apply again
    life = Life(plane, heads, namespace, "again")
    life.training()
    life.head.say(step=3, metrics={"reward": 0.5})
    eventually("step 3", lambda: life.status.get("training", {}).get("step") == 3)
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml12.dump(documents.job("again", namespace)))
    manager = "--field-manager=kustomize-controller"
    apply = ("apply", "--server-side", manager, "--force-conflicts", "-f", str(manifest))
    kubectl(plane, *apply)  # the first enters the manager among the object's managers
    life.head.say(step=4)  # the last who wrote is the operator, as mostly where a tool applies every few minutes
    eventually("step 4", lambda: life.status["training"]["step"] == 4)
    before, since = plane.find(life.path), plane.audit_length()
    for _ in range(20):
        kubectl(plane, *apply)
    assert plane.writes(OPERATOR_USER, namespace, since) == [], "the operator has nothing to answer it with"
    assert plane.find(life.path) == before, "not even the resourceVersion"
    assert kubectl(plane, "diff", "--server-side", manager, "--force-conflicts", "-f", str(manifest)) == ""
    life.reaches("Training", "Training", seconds=1)


@pytest.mark.usefixtures("operator")
def test_client_side_apply_changes_nothing_the_second_time(
    plane: ControlPlane, heads: Heads, namespace: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml12.dump(documents.job("twice", namespace)))
    assert "created" in kubectl(plane, "apply", "-f", str(manifest))
    life = Life(plane, heads, namespace, "twice")
    life.training()
    before = plane.find(life.path)
    assert "unchanged" in kubectl(plane, "apply", "-f", str(manifest))
    assert plane.find(life.path) == before


def test_the_crd_is_taken_by_client_side_apply(plane: ControlPlane) -> None:
    # complaint 24: the whole document goes into an annotation, and annotations have 256 KiB in all
    kubectl(plane, "apply", "-f", str(ROOT / "crds/simplerljobs.yaml"))
    annotations: dict[str, Any] = plane.find(CRD)["metadata"]["annotations"]
    assert 0 < len(annotations["kubectl.kubernetes.io/last-applied-configuration"].encode()) < 262144


@pytest.mark.usefixtures("operator")
def test_a_live_job_is_read_right_in_each_phase(plane: ControlPlane, heads: Heads, namespace: str) -> None:
    life = Life(plane, heads, namespace, "live")
    seen: list[dict[str, Any]] = []

    def look(phase: str) -> None:
        life.reaches(phase)
        seen.append(plane.find(life.path))

    look("Provisioning")
    life.submitted()
    look("Starting")
    life.head.say(state="Training", step=0)
    look("Training")
    life.head.say(state="Succeeded", step=60)
    look("Succeeded")
    lost = Life(plane, heads, namespace, "broken")
    lost.submitted()
    lost.head.say(state="Failed", failure={"reason": "InvalidInput", "message": "no question is left"})
    lost.reaches("Failed")
    seen.append(plane.find(lost.path))
    refused = Life(plane, heads, namespace, "refused", checkpoint={"claimName": "none"})
    refused.reaches("Pending", "ClaimNotFound")
    seen.append(plane.find(refused.path))
    phases = ["Provisioning", "Starting", "Training", "Succeeded", "Failed"]
    assert health.words(seen) == [*(HEALTH[phase] for phase in phases), HEALTH["Failed"]]


@pytest.mark.usefixtures("operator")
def test_marks_of_deploy_tools_stay_on_the_job(plane: ControlPlane, heads: Heads, namespace: str) -> None:
    # complaint 22: a child that bears the label by which a tool finds its own objects would be pruned by it
    marks = {"app.kubernetes.io/instance": "team-a", "kustomize.toolkit.fluxcd.io/name": "team-a"}
    tracking = {"argocd.argoproj.io/tracking-id": "team-a:simplerl.io/SimpleRLJob:team-a/marked"}
    document = documents.job("marked", namespace)
    document["metadata"] |= {"labels": marks, "annotations": tracking}
    plane.request("POST", f"{JOBS}/{namespace}/simplerljobs", document)
    life = Life(plane, heads, namespace, "marked")
    cluster = life.cluster().document
    config = plane.find(f"/api/v1/namespaces/{namespace}/configmaps/{life.cluster_name}")
    secrets = plane.find(f"/api/v1/namespaces/{namespace}/secrets")["items"]
    templates = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    metadata = [o["metadata"] for o in (cluster, config, *secrets, *(t["template"] for t in templates))]
    assert len(metadata) >= 5
    for child in metadata:
        assert not {*child.get("labels", {}), *child.get("annotations", {})} & {*marks, *tracking}
