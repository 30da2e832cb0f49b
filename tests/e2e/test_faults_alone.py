"""Faults in real pods that need a job of their own: `make test-faults` runs them after those of test_faults.py."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hack.cluster import cluster
from hack.demo import volumes
from tests.e2e import drill as drills
from tests.e2e import fault_table
from tests.e2e.conftest import Installed
from tests.e2e.drill import Drill, saved, step

pytestmark = pytest.mark.long

IMAGE, MEMORY, KUEUE = "image missing", "container over its limit", "preempted by Kueue"


@pytest.mark.skipif(os.environ.get("ONLY", "") not in IMAGE, reason="ONLY names others")
def test_a_missing_image_is_said_and_can_be_put_right(installed: Installed) -> None:
    job = Drill(installed.cluster, "image")
    job.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    try:
        job.apply(cluster={"image": "simplerl.local/missing:1"}, training={"steps": 2})
        began = time.monotonic()
        said = job.until("the word of the image", lambda s: drills.ready(s)["reason"] == "ImagePullFailed", 120)
        message = drills.ready(said)["message"]
        assert "simplerl.local/missing:1" in message
        seconds = time.monotonic() - began
        job.patch(suspend=True)
        job.until("the suspension", lambda s: s.get("phase") == "Suspended", 200)
        job.patch(suspend=False, cluster={"image": installed.trainer_image})
        done = job.until("the end", lambda s: s.get("phase") == "Succeeded", 600)
        assert done.get("failures", 0) == 0
    finally:
        job.delete()
    fault_table.record(
        IMAGE, "`cluster.image` names an image that is not there; suspended, corrected and resumed",
        f"{fault_table.told('ImagePullFailed', message)}, after {seconds:.0f} s", "no",
        "with the right image, to its end", "",
    )  # fmt: skip


EXCEED = """
open("/proc/self/oom_score_adj", "w").write("0")
held = []
while True:
    held.append(b"1" * (1 << 26))
"""


@pytest.mark.skipif(os.environ.get("ONLY", "") not in MEMORY, reason="ONLY names others")
def test_a_container_that_the_kernel_ends_is_named(installed: Installed) -> None:
    """A process of the container takes more than its limit. The kernel ends the container's first process for it, as
    it ends all of a container in the second version of cgroups; Ray's monitor, which would end the rank before, is off.
    """
    if not installed.cluster.embedded:
        pytest.skip("what the kernel ends first is set from outside the container, in the embedded cluster only")
    job = Drill(installed.cluster, "memory")
    job.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    try:
        job.apply(cluster={"env": [{"name": "RAY_memory_monitor_refresh_ms", "value": "0"}]})
        before = job.until("a checkpoint", lambda s: s.get("phase") == "Training" and saved(s) > 0)
        pod = job.pod_of(drills.RANK)
        first = drills.processes(pod, "ray start")
        for pid in drills.processes(pod, ""):
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000" if pid in first else "0")
        job.python(pod, EXCEED, 60)
        began = time.monotonic()
        ended = job.until("the word of it", out_of_memory, 15)["attempts"][-1]
        said = time.monotonic() - began
        killed = next(t for t in ended["terminations"] if t["reason"] == "OOMKilled")
        assert (killed["pod"], killed["container"], killed["exitCode"]) == (pod["metadata"]["name"], "ray-worker", 137)
        told = "ended: container ray-worker OOMKilled (exit code 137) at its memory limit of 4Gi"
        assert ended["message"].endswith(f"; worker pod {pod['metadata']['name']} {told}")
        again = job.until("another attempt", lambda s: s.get("attempt", 1) > 1)
        assert (again["failures"], again["attempt"]) == (1, 2), "it is charged until the run gets further"
        goal = step(before) + 2
        after = job.until("two more steps", lambda s: s.get("phase") == "Training" and step(s) >= goal, 600)
        seconds = time.monotonic() - began
        assert after["attempt"] == 2
        assert after["cluster"]["name"] != before["cluster"]["name"]
        steps = job.steps()
        assert steps == list(range(1, len(steps) + 1))
    finally:
        job.delete()
    fault_table.record(
        MEMORY, "a worker's container above its memory limit, with Ray's own monitor off: the kernel ends it",
        f"{fault_table.told(ended['reason'], ended['message'])}, after {said:.0f} s", "yes",
        f"in a new RayCluster, from step {saved(before)} or later", f"{seconds:.0f}",
    )  # fmt: skip


def out_of_memory(status: dict[str, Any]) -> bool:
    attempts = status.get("attempts", [])
    return bool(attempts) and any(t["reason"] == "OOMKilled" for t in attempts[-1].get("terminations", []))


@pytest.mark.skipif(os.environ.get("ONLY", "") not in KUEUE, reason="ONLY names others")
def test_kueue_preempts_and_admits_again(installed: Installed) -> None:
    """The queue is that of docs/kueue.md."""
    if not installed.cluster.embedded:
        pytest.skip("Kueue is added to the embedded cluster only")
    cluster.up(kueue=True)
    page = (drills.ROOT / "docs/kueue.md").read_text("utf-8")
    (queue,) = [text for text in re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.M) if "ClusterQueue" in text]
    installed.cluster.run("making the queue", "apply", "--server-side", "-f", "-", stdin=queue, seconds=60)
    volumes.claim(installed.cluster, drills.CLAIM)
    low, high = Drill(installed.cluster, "low"), Drill(installed.cluster, "high")
    for job in (low, high):
        job.delete()
    labels = {"kueue.x-k8s.io/queue-name": "team-a"}
    try:
        low.apply(metadata={"labels": labels})
        before = low.until("a checkpoint", lambda s: s.get("phase") == "Training" and saved(s) > 0)
        high.apply(metadata={"labels": labels | {"kueue.x-k8s.io/priority-class": "high"}}, training={"steps": 2})
        queued = low.until("the preemption", lambda s: s.get("phase") == "Queued", 120)
        assert drills.ready(queued)["reason"] == "Preempted"
        high.until("the end of the other", lambda s: s.get("phase") == "Succeeded", 600)
        freed = time.monotonic()
        after = low.until("new steps", lambda s: s.get("phase") == "Training" and step(s) > step(queued), 600)
        seconds = time.monotonic() - freed
        assert after["cluster"]["uid"] == before["cluster"]["uid"]
        assert after.get("failures", 0) == 0
        steps = low.steps()
        assert steps == list(range(1, len(steps) + 1))
    finally:
        for job in (low, high):
            job.delete()
    fault_table.record(
        KUEUE, "a job of higher priority in the same ClusterQueue",
        fault_table.told("Preempted", drills.ready(queued)["message"]), "no",
        "in the same RayCluster, once the other job was over", f"{seconds:.0f} from then",
    )  # fmt: skip
