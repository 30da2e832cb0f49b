"""The files of deploy/ are what they say: valid jobs, values that the chart takes, a repository that renders."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.operator import programs

from simplerl_api import KIND, validation, yaml12

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEAM = DEPLOY / "repository/teams/team-a"


def run(program: str, *words: str) -> str:
    done = subprocess.run(
        [str(programs.path(program)), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


OBJECTS = [path for path in sorted(DEPLOY.rglob("*.yaml")) if path.parent.name != "prometheus"]


@pytest.mark.parametrize("path", OBJECTS, ids=lambda p: str(p.relative_to(DEPLOY)))
def test_each_file_is_one_object_of_kubernetes(path: Path) -> None:
    document = yaml12.load(path.read_text("utf-8"))
    assert {"apiVersion", "kind"} <= set(document)
    if document["kind"] == KIND:
        assert validation.faults(document) == []
        assert "ttlSecondsAfterFinished" not in document["spec"]


def test_the_repository_renders_with_all_its_files() -> None:
    objects = yaml12.load_all(run("kubectl", "kustomize", str(TEAM)))
    assert {o["metadata"]["namespace"] for o in objects} == {"team-a"}
    files = {path.name for path in TEAM.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(yaml12.load((TEAM / "kustomization.yaml").read_text())["resources"])
    job, claim = (next(o for o in objects if o["kind"] == kind) for kind in (KIND, "PersistentVolumeClaim"))
    assert job["spec"]["checkpoint"]["claimName"] == claim["metadata"]["name"]


def test_both_tools_look_where_the_repository_has_its_files() -> None:
    application = yaml12.load((DEPLOY / "argocd/application.yaml").read_text())["spec"]
    kustomization = yaml12.load((DEPLOY / "flux/jobs.yaml").read_text())["spec"]
    for path in (application["source"]["path"], kustomization["path"]):
        assert (DEPLOY / "repository" / path).is_dir()
    release = yaml12.load((DEPLOY / "flux/operator.yaml").read_text())
    assert {"name": release["metadata"]["name"]} in kustomization["dependsOn"]


def test_the_chart_takes_the_values_of_the_helm_release(tmp_path: Path) -> None:
    spec: dict[str, Any] = yaml12.load((DEPLOY / "flux/operator.yaml").read_text())["spec"]
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(spec["values"]))
    assert "kind: Deployment" in run("helm", "template", str(ROOT / spec["chart"]["spec"]["chart"]), "-f", str(values))
