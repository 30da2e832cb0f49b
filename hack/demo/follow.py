"""Following a job as a person does: `kubectl get simplerljobs -w`, until it ends."""

import subprocess
import sys
import time
from typing import Any

from hack.cluster import commands
from hack.cluster.errors import ClusterError
from hack.demo.target import Target


def until_done(target: Target, name: str, seconds: float) -> dict[str, Any]:
    """The job's object once it Succeeded or Failed, its rows having been printed as they changed."""
    command = [target.kubectl, "get", "simplerljobs", name, "-n", "default", "--watch"]
    print("$ kubectl get simplerljobs -w", flush=True)
    watch = subprocess.Popen(command, env={**_environment(target)}, stdout=sys.stdout)
    deadline = time.monotonic() + seconds
    try:
        while True:
            job = target.get("simplerljobs", name, "default")
            if job is None:
                raise ClusterError(f"job {name} was deleted by somebody else: run the demo again")
            phase = job.get("status", {}).get("phase")
            if phase in ("Succeeded", "Failed"):
                time.sleep(1)  # the watch prints the last row
                return job
            if time.monotonic() > deadline:
                raise ClusterError(f"timed out after {seconds:.0f} s: job {name} is {phase}: {_ready(job)}")
            time.sleep(1)
    finally:
        watch.terminate()
        watch.wait(timeout=10)


def report(job: dict[str, Any]) -> None:
    """What came of it, in a few lines."""
    status = job["status"]
    for e in status.get("evaluations", []):
        first, last = e["first"], e["last"]
        commands.say(
            f"accuracy on {e['dataset']}: {first['accuracy']:.3f} before training, {last['accuracy']:.3f} after step "
            f"{last['step']}"
        )
    if "model" in status:
        commands.say(
            f"the trained model: {status['model']['path']} of claim {job['spec']['checkpoint'].get('claimName')}"
        )
    commands.say(f"job {job['metadata']['name']}: {status['phase']}: {_ready(job)}")
    if "failure" in status:
        print(status["failure"].get("log", ""), file=sys.stderr)


def _ready(job: dict[str, Any] | None) -> str:
    for condition in (job or {}).get("status", {}).get("conditions", []):
        if condition["type"] == "Ready":
            return f"{condition['reason']}: {condition.get('message', '')}"
    return "no status yet"


def _environment(target: Target) -> dict[str, str]:
    import os

    return {**os.environ, **target.environment()}
