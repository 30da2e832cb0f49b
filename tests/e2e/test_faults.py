"""Named faults in real pods: one long job to which they are done one after the other, since each must go on by itself.

`make test-faults` runs them all, `make test-faults ONLY=head` those whose name holds a word; docs/faults.md keeps what
came of each.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hack.cluster import addresses, cluster, commands, control_plane, node
from hack.cluster.errors import ClusterError
from hack.demo import volumes
from tests.e2e import drill as drills
from tests.e2e import fault_table
from tests.e2e.conftest import Installed
from tests.e2e.drill import Drill, saved, step

pytestmark = pytest.mark.long

Act = Callable[[Drill], None]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that is done to a job that trains, and what must come of it."""

    done: str
    """What is done, as the table says it."""
    act: Act
    ends: frozenset[str] = frozenset()
    """Reasons of which the attempt's record must have one; none: the attempt must go on."""
    charged: bool = True
    kept: bool = False
    """Whether the next attempt goes on in the same RayCluster."""
    termination: str = ""
    """What a container's record must say."""


def head_deleted(drill: Drill) -> None:
    drill.delete_pod(next(p for p in drill.pods() if p["metadata"]["labels"]["simplerl.io/role"] == "head"))


def rank_deleted(drill: Drill) -> None:
    drill.delete_pod(drill.pod_of(drills.RANK))


def engine_deleted(drill: Drill) -> None:
    drill.delete_pod(drill.pod_of(drills.ENGINE))


def out_of_memory(drill: Drill) -> None:
    """A process of the container takes more than its limit; the kernel is told to end the container's first process for
    it, as it would where that one is the largest."""
    pod = drill.pod_of(drills.RANK)
    for pid in drills.processes(pod, "ray start"):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    hog = "b = []\nwhile True: b.append(bytearray(1 << 26))"
    words = ("exec", pod["metadata"]["name"], "-n", "default", "-c", "ray-worker", "--", "python", "-c", hog)
    with contextlib.suppress(ClusterError):  # it ends with its container
        drill.cluster.run("filling a container's memory", *words, seconds=120)


def operator_killed(drill: Drill) -> None:
    drill.cluster.run(
        "killing the operator", "delete", "pod", "-n", "simplerl-system", "--all", "--grace-period=0", "--force"
    )


def node_drained(drill: Drill) -> None:
    """The one node's pods of this job, by the eviction API, as `kubectl drain` asks for it."""
    run = drill.cluster.run
    run(
        "draining the node", "drain", addresses.NODE, f"--pod-selector=simplerl.io/job={drill.name}",
        "--delete-emptydir-data", "--force", "--ignore-daemonsets", "--timeout=150s", seconds=170,
    )  # fmt: skip
    run("opening the node", "uncordon", addresses.NODE)


def suspended(drill: Drill) -> None:
    drill.patch(suspend=True)
    drill.until("the suspension", lambda s: s.get("phase") == "Suspended", 200)
    assert drill.pods() == []
    drill.patch(suspend=False)


def api_server_restarted(drill: Drill) -> None:
    # told to end it would serve its watches for a minute more
    commands.run(node.inside(["kill", "-9", node.pid_inside("kube-apiserver")]), "ending the API server")
    time.sleep(20)
    control_plane.start_api_server()
    control_plane.wait_for_api_server()


FAULTS = {
    "driver killed": Fault(
        done="SIGKILL to the driver", act=lambda drill: drill.kill(drills.DRIVER), ends=frozenset({"DriverFailed"}),
        kept=True,
    ),
    "engine killed": Fault(done="SIGKILL to the engine", act=lambda drill: drill.kill(drills.ENGINE)),
    "rank killed": Fault(
        done="SIGKILL to a rank", act=lambda drill: drill.kill(drills.RANK), ends=frozenset({"LostRank"}), kept=True
    ),
    "operator killed": Fault(done="the operator's pod deleted with no grace", act=operator_killed),
    "API server restarted": Fault(done="the API server stopped for 20 s", act=api_server_restarted),
    "head pod deleted": Fault(done="`kubectl delete pod` of the head", act=head_deleted, ends=frozenset({"HeadLost"})),
    "suspended and resumed": Fault(
        done="`spec.suspend` true, then false", act=suspended, ends=frozenset({"Suspended"}), charged=False
    ),
    "node drained": Fault(
        done="all pods evicted, the node closed for a while", act=node_drained,
        ends=frozenset({"Interrupted", "Drained"}),
        charged=False,
    ),
    "worker out of memory": Fault(
        done="a worker's container above its memory limit", act=out_of_memory,
        ends=frozenset({"LostRank", "WorkerLost", "TrainingOutOfMemory"}), termination="OOMKilled",
    ),
    "engine's pod deleted": Fault(done="`kubectl delete pod` of the worker with the one engine", act=engine_deleted),
    "rank's pod deleted": Fault(
        done="`kubectl delete pod` of a worker with a rank", act=rank_deleted,
        ends=frozenset({"LostRank", "WorkerLost"}),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def drill(installed: Installed) -> Iterator[Drill]:
    if not installed.cluster.embedded:
        pytest.skip("faults are made in the embedded cluster only: they kill processes of its node")
    job = Drill(installed.cluster, "faults")
    job.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    job.apply()
    yield job
    job.delete()


@pytest.mark.parametrize("name", [n for n in FAULTS if os.environ.get("ONLY", "") in n])
def test_a_fault_in_real_pods(name: str, drill: Drill) -> None:
    fault = FAULTS[name]
    if drill.status.get("failures", 0) > 2:  # each charged failure doubles the wait for the next attempt
        drill.delete()
        drill.apply()
    start = max(saved(drill.status), 1)
    before = drill.until(
        "a new checkpoint", lambda s: s.get("phase") == "Training" and saved(s) > start and step(s) > saved(s)
    )
    began = time.monotonic()
    fault.act(drill)
    if fault.ends:
        after = drill.until("another attempt", lambda s: s.get("attempt", 1) > before["attempt"])
        ended = next(a for a in after["attempts"] if a["number"] == before["attempt"])
        assert ended["reason"] in fault.ends, ended
        if fault.termination:
            assert fault.termination in [t["reason"] for t in ended.get("terminations", [])], ended
    goal = step(before) + 2
    after = drill.until("two more steps", lambda s: s.get("phase") == "Training" and step(s) >= goal, 600)
    seconds = time.monotonic() - began
    if not fault.ends:
        assert after["attempt"] == before["attempt"], after["attempts"]
    charged = fault.charged and bool(fault.ends)
    assert after.get("failures", 0) - before.get("failures", 0) == int(charged)
    same = after["cluster"]["name"] == before["cluster"]["name"]
    assert same == (fault.kept or not fault.ends)
    came_back = steps_of(drill)
    assert came_back == list(range(1, len(came_back) + 1)), "each step is trained once and none is left out"
    said = f"`{ended['reason']}`: {ended['message'].splitlines()[0][:120]}" if fault.ends else "it went on"
    fault_table.record(
        name, fault.done, said.replace("|", "/"), "yes" if charged else "no",
        ("in the same RayCluster" if same else "in a new RayCluster") + f", from step {saved(before)} or later",
        f"{seconds:.0f}",
    )  # fmt: skip


IMAGE, KUEUE = "image missing", "preempted by Kueue"


@pytest.mark.skipif(os.environ.get("ONLY", "") not in IMAGE, reason="ONLY names others")
def test_a_missing_image_is_said_and_can_be_put_right(installed: Installed) -> None:
    job = Drill(installed.cluster, "image")
    job.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    try:
        job.apply(cluster={"image": "simplerl.local/missing:1"}, training={"steps": 2})
        began = time.monotonic()
        said = job.until("the word of the image", lambda s: ready(s)["reason"] == "ImagePullFailed", 120)
        message = ready(said)["message"]
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
        f"`ImagePullFailed` after {seconds:.0f} s: {message[:120]}", "no", "with the right image, to its end", "",
    )  # fmt: skip


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
        assert ready(queued)["reason"] == "Preempted"
        high.until("the end of the other", lambda s: s.get("phase") == "Succeeded", 600)
        freed = time.monotonic()
        after = low.until("new steps", lambda s: s.get("phase") == "Training" and step(s) > step(queued), 600)
        seconds = time.monotonic() - freed
        assert after["cluster"]["uid"] == before["cluster"]["uid"]
        assert after.get("failures", 0) == 0
        steps = steps_of(low)
        assert steps == list(range(1, len(steps) + 1))
    finally:
        for job in (low, high):
            job.delete()
    fault_table.record(
        KUEUE, "a job of higher priority in the same ClusterQueue", f"`Preempted`: {ready(queued)['message'][:120]}",
        "no", "in the same RayCluster, once the other job was over", f"{seconds:.0f} from then",
    )  # fmt: skip


def ready(status: dict[str, Any]) -> dict[str, str]:
    return next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {"reason": "", "message": ""})


def steps_of(drill: Drill) -> list[int]:
    """The steps in the run's own record."""
    document: Any = drill.cluster.get("simplerljobs", drill.name, "default")
    uid = document["metadata"]["uid"].replace("-", "")[:8]
    folder = volumes.places.VOLUMES / drills.CLAIM / "default" / f"{drill.name}-{uid}"
    return [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text("utf-8").split("\n") if line]
