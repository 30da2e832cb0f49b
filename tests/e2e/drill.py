"""A job that trains in real pods and to which things are done."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hack.cluster import places
from hack.cluster.errors import ClusterError
from hack.demo.target import Target

from simplerl_api import yaml12

ROOT = Path(__file__).parents[2]
CLAIM = "faults"
RANK, ENGINE, DRIVER = "ray::RankActor", "ray::EngineActor", "simplerl_trainer.driver"
"""What the command lines of the processes hold."""


class Drill:
    """One job, by name."""

    def __init__(self, cluster: Target, name: str, namespace: str = "default") -> None:
        self.cluster = cluster
        self.name = name
        self.namespace = namespace

    def apply(self, **changes: Any) -> None:
        """The tiny job without evaluations, with a checkpoint every second step, and with sections changed, or emptied
        where they are None."""
        job = yaml12.load_file(ROOT / "examples/tiny.yaml")
        job["metadata"] = {"name": self.name, "namespace": self.namespace, **changes.pop("metadata", {})}
        spec = job["spec"]
        del spec["evaluation"]
        spec["training"]["steps"] = 5000
        spec["checkpoint"] = {"claimName": CLAIM, "everySteps": 2}
        spec["recovery"] = {"backoffLimit": 50, "drainSeconds": 60}
        for section, fields in changes.items():
            spec[section] = {} if fields is None else {**spec.get(section, {}), **fields}
        self.cluster.apply(f"applying job {self.name}", job)

    def delete(self) -> None:
        self.cluster.run(
            f"deleting job {self.name}", "delete", "simplerljobs", self.name, "-n", self.namespace,
            "--ignore-not-found", seconds=120,
        )  # fmt: skip

    def patch(self, **spec: Any) -> None:
        self.cluster.run(
            f"changing job {self.name}", "patch", "simplerljobs", self.name, "-n", self.namespace, "--type=merge", "-p",
            json.dumps({"spec": spec}),
        )  # fmt: skip

    @property
    def status(self) -> dict[str, Any]:
        return (self.cluster.get("simplerljobs", self.name, self.namespace) or {}).get("status", {})

    def until(self, what: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 900) -> dict[str, Any]:
        """The status once `holds` is true of it."""
        deadline = time.monotonic() + seconds
        while True:
            status: dict[str, Any] = {}
            with contextlib.suppress(ClusterError):  # the API server may be what was taken away
                status = self.status
            if status and holds(status):
                return status
            failed = status.get("phase") == "Failed"
            if failed or time.monotonic() > deadline:
                now = ready(status)
                raise AssertionError(
                    f"{'the job failed' if failed else f'waited {seconds:.0f} s'} before {what}: phase "
                    f"{status.get('phase')}, {now['reason']}: {now['message']}, attempt "
                    f"{status.get('attempt')}, attempts {json.dumps(status.get('attempts', []))[-1500:]}"
                )
            time.sleep(2)

    def pods(self) -> list[dict[str, Any]]:
        words = ("get", "pods", "-n", self.namespace, "-l", f"simplerl.io/job={self.name}", "-o", "json")
        found: list[dict[str, Any]] = json.loads(self.cluster.run("listing pods", *words))["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def pod_of(self, process: str) -> dict[str, Any]:
        """A pod in which a process of this kind runs."""
        return next(pod for pod in self.pods() if processes(pod, process))

    def kill(self, process: str) -> None:
        """SIGKILL to every process of a kind in one pod that has it."""
        for pid in processes(self.pod_of(process), process):
            os.kill(pid, signal.SIGKILL)

    def delete_pod(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        self.cluster.run("deleting a pod", "delete", "pod", name, "-n", self.namespace, "--wait=false")

    def python(self, pod: dict[str, Any], code: str, seconds: float) -> None:
        """Runs a program in the Ray container of a pod; it may end with its container."""
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
        words = ("exec", name, "-n", self.namespace, "-c", container, "--", "python", "-c", code)
        with contextlib.suppress(ClusterError):
            self.cluster.run(f"running a program in pod {name}", *words, seconds=seconds)

    def steps(self) -> list[int]:
        """The steps in the run's own record on its claim, in the embedded cluster."""
        document: Any = self.cluster.get("simplerljobs", self.name, self.namespace)
        uid = document["metadata"]["uid"].replace("-", "")[:8]
        folder = places.VOLUMES / CLAIM / self.namespace / f"{self.name}-{uid}"
        text = (folder / "metrics.jsonl").read_text("utf-8")
        return [json.loads(line)["step"] for line in text.split("\n") if line]


def processes(pod: dict[str, Any], holds: str) -> list[int]:
    """Process numbers, as this machine sees them, of a pod's processes whose command line holds a text."""
    uid = pod["metadata"]["uid"]
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if uid in (folder / "cgroup").read_text() and holds in command_line(folder):
                found.append(int(folder.name))
        except OSError:  # it ended meanwhile
            continue
    return sorted(found)


def command_line(folder: Path) -> str:
    return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def ready(status: dict[str, Any]) -> dict[str, str]:
    """The condition that carries the reason and a sentence at all times."""
    return next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {"reason": "", "message": ""})


def step(status: dict[str, Any]) -> int:
    return int(status.get("training", {}).get("step", 0))


def saved(status: dict[str, Any]) -> int:
    return int(status.get("checkpoint", {}).get("step", 0))
