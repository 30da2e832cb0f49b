"""Named faults in real pods: one long job to which they are done one after the other, since each must go on by itself.

`make test-faults` runs them all, `make test-faults ONLY=head` those whose name holds a word; docs/faults.md keeps what
came of each.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hack.cluster import addresses, commands, control_plane, node
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


def head_deleted(drill: Drill) -> None:
    drill.delete_pod(next(p for p in drill.pods() if p["metadata"]["labels"]["simplerl.io/role"] == "head"))


def rank_deleted(drill: Drill) -> None:
    drill.delete_pod(drill.pod_of(drills.RANK))


def engine_deleted(drill: Drill) -> None:
    drill.delete_pod(drill.pod_of(drills.ENGINE))


FILL = """
import time
from ray._private.utils import get_cgroup_mem_stats
held, most, end = [], 0, time.monotonic() + 100
while time.monotonic() < end:
    used, limit = get_cgroup_mem_stats()
    most = max(most, used)
    if used < most - (1 << 27):
        break  # a rank has gone
    if used < 0.96 * limit:
        held.append(b"1" * (1 << 24))
    else:
        time.sleep(0.05)
"""
"""Takes memory up to a little above the share, 0.95, at which Ray's monitor acts, and gives it back once that has."""


def share_eaten(drill: Drill) -> None:
    drill.python(drill.pod_of(drills.RANK), FILL, 120)


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
    "worker short of memory": Fault(
        done="96 % of the limit of a rank's container taken: Ray's memory monitor ends the rank", act=share_eaten,
        ends=frozenset({"TrainingOutOfMemory"}), kept=True,
        charged=False,  # the next attempt has smaller micro-batches
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
        # read before the run gets further, which forgives it
        charged = after.get("failures", 0) - before.get("failures", 0)
        assert charged == int(fault.charged)
    goal = step(before) + 2
    after = drill.until("two more steps", lambda s: s.get("phase") == "Training" and step(s) >= goal, 600)
    seconds = time.monotonic() - began
    if not fault.ends:
        charged = after.get("failures", 0)
        assert (after["attempt"], charged) == (before["attempt"], 0), after.get("attempts")
    same = after["cluster"]["name"] == before["cluster"]["name"]
    assert same == (fault.kept or not fault.ends)
    came_back = drill.steps()
    assert came_back == list(range(1, len(came_back) + 1)), "each step is trained once and none is left out"
    said = fault_table.told(ended["reason"], ended["message"]) if fault.ends else "it went on"
    fault_table.record(
        name, fault.done, said, "yes" if charged else "no",
        ("in the same RayCluster" if same else "in a new RayCluster") + f", from step {saved(before)} or later",
        f"{seconds:.0f}",
    )  # fmt: skip
