"""What GitOps tools make of an object, by their own code: the program of health/."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hack.cluster import programs
from hack.cluster.programs import Program

from simplerl_api import yaml12

ROOT = Path(__file__).parents[2]
LUA = (ROOT / "deploy/argocd/health.lua").read_text("utf-8")
PROGRAM = Program("health", "sigs.k8s.io/cli-utils", (".",), ("health",), modules=Path(__file__).parent)


def expressions() -> dict[str, str]:
    """Flux's expressions for jobs."""
    kustomization = yaml12.load((ROOT / "deploy/flux/jobs.yaml").read_text("utf-8"))
    (found,) = kustomization["spec"]["healthCheckExprs"]
    return {name: found[name] for name in ("inProgress", "failed", "current")}


def read(objects: Sequence[dict[str, Any]]) -> list[dict[str, dict[str, str]]]:
    """The answers of kstatus, Argo CD and Flux for each object."""
    if not PROGRAM.is_built:
        programs.build(PROGRAM)
    cel = expressions()
    lines = "\n".join(json.dumps({"object": found, "lua": LUA, "cel": cel}) for found in objects)
    done = subprocess.run(
        [str(PROGRAM.built / "health")], input=lines, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def words(objects: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Their words alone: kstatus, Argo CD, Flux."""
    return [(a["kstatus"]["status"], a["argo"]["status"], a["flux"]["status"]) for a in read(objects)]
