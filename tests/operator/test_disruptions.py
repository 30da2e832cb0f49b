"""Pods that went while the operator was away: whether the attempt is charged, by what Events and nodes still tell."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks.operator.plane import Fleet, running
from tests.operator import operator_process
from tests.operator.control_plane import eventually
from tests.operator.heads import Heads
from tests.operator.observations import CLUSTER, NOW, all_pods, job, locked, pod, progress, seen, started, submitted
from tests.operator.operator_process import OperatorProcess
from tests.operator.test_faults_live import NAMESPACE, SHAPE, Cell, Sight

from simplerl_api.status import Phase
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe import aftermath, disruptions
from simplerl_operator.observe.observation import Observation

WORKER = f"{CLUSTER}-workers-worker-1"
HEAD = f"{CLUSTER}-head"
SINCE = rfc3339(NOW - 60)


def event(name: str, reason: str, message: str, ago: float = 10, **fields: Any) -> dict[str, Any]:
    """An Event about a pod, as the core API gives it."""
    return {
        "metadata": {"creationTimestamp": rfc3339(NOW - ago)},
        "involvedObject": {"kind": "Pod", "name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": rfc3339(NOW - ago),
        **fields,
    }


def preempted(name: str = WORKER, ago: float = 10) -> dict[str, Any]:
    """The scheduler's, by the newer Events API: its time is of another kind."""
    said = "Preempted by pod 0c1d2e3f on node node-0"
    time = rfc3339(NOW - ago).replace("Z", ".123456Z")
    return event(name, "Preempted", said, eventTime=time, lastTimestamp=None, source={})


def killed(name: str = WORKER, host: str = "node-0") -> dict[str, Any]:
    source = {"component": "kubelet", "host": host}
    return event(name, "Killing", "Stopping container ray-worker", source=source)


ASSIGNED = event(WORKER, "Scheduled", f"Successfully assigned team-a/{WORKER} to node-7", 40)
TAINTED = event(WORKER, "TaintManagerEviction", f"Marking for deletion Pod team-a/{WORKER}", 20)
SPARED = event(WORKER, "TaintManagerEviction", f"Cancelling deletion of Pod team-a/{WORKER}", 15)
LIMIT = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
PRESSURE = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. "


@dataclass(frozen=True)
class Row:
    sentence: str
    events: list[dict[str, Any]]
    found: tuple[tuple[str, str, str], ...]
    """Name, node and taker of each trace."""


ROWS = [
    Row(
        "the scheduler says whom it preempted for", [preempted()],
        ((WORKER, "", "Preempted: Preempted by pod 0c1d2e3f on node node-0"),),
    ),
    Row(
        "the node controllers say it without the pod's uid", [ASSIGNED, TAINTED],
        ((WORKER, "node-7", f"TaintManagerEviction: Marking for deletion Pod team-a/{WORKER}"),),
    ),
    Row("a taint that went in time took nothing", [TAINTED, SPARED], ((WORKER, "", ""),)),
    Row("in whatever order they are listed", [SPARED, TAINTED], ((WORKER, "", ""),)),
    Row(
        "kubelet under pressure", [event(WORKER, "Evicted", PRESSURE, source={"component": "kubelet", "host": "n"})],
        ((WORKER, "n", f"Evicted: {PRESSURE}"),),
    ),
    Row("a pod beyond its own limit is no victim", [event(WORKER, "Evicted", LIMIT)], ((WORKER, "", ""),)),
    Row("kubelet's Events name the node that it is on", [killed(host="node-3")], ((WORKER, "node-3", ""),)),
    Row(
        "the head comes first", [killed(), killed(HEAD, "node-1")], ((HEAD, "node-1", ""), (WORKER, "node-0", "")),
    ),
    Row("another attempt's pods are not this one's", [preempted("tiny-0a1b2-11-workers-worker-1")], ()),
    Row("nor other jobs'", [preempted("tiny-0a1b2-1-head-0a1b2-1-head")], ()),
    Row("nor an earlier pod of the same name", [preempted(ago=70)], ()),
    Row("a pod that is there tells by itself", [preempted(f"{CLUSTER}-workers-worker-0")], ()),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.sentence for row in ROWS])
def test_events_tell_of_pods_that_are_gone(row: Row) -> None:
    there = {f"{CLUSTER}-workers-worker-0"}
    found = disruptions.traces(row.events, CLUSTER, [SINCE], there)
    assert tuple((t.name, t.node, t.taken) for t in found) == row.found


def test_names_that_kuberay_shortens_are_known() -> None:
    cluster = f"{'j' * 44}-0a1b2-12"
    names = (f"{cluster[:50]}-head", f"{cluster[:50]}-worker-x7zq9")
    found = disruptions.traces([preempted(name) for name in names], cluster, [SINCE], set())
    assert tuple(trace.name for trace in found) == names


def node(*taints: dict[str, str], ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "spec": {**spec, "taints": list(taints)},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


NO_EXECUTE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
NO_SCHEDULE = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
NODES: list[tuple[str, dict[str, Any] | None, str]] = [
    ("one that was removed", None, "its node n is gone"),
    ("one that is being drained", node(unschedulable=True), "its node n is cordoned"),
    ("one that does not answer", node(ready="Unknown"), "its node n is not ready"),
    ("one that never said anything", {}, "its node n is not ready"),
    ("one that nothing may run on", node(NO_SCHEDULE, NO_EXECUTE),
     "its node n has the NoExecute taint node.kubernetes.io/out-of-service"),
    ("one that takes some pods only", node(NO_SCHEDULE), ""),
    ("one that is well", node(), ""),
]  # fmt: skip


@pytest.mark.parametrize(("document", "why"), [n[1:] for n in NODES], ids=[n[0] for n in NODES])
def test_a_node_tells_why_pods_leave_it(document: dict[str, Any] | None, why: str) -> None:
    assert disruptions.of_node("n", document) == why


def came_back(*taken: str, why: str = "its node n is cordoned", **fields: Any) -> Observation:
    """A job that trained, and pods that the cluster took from it meanwhile."""
    together = {"recovery": {"backoffLimit": 2}, "placement": {"colocated": {}}}
    plan = job(**together).plan
    assert plan is not None
    found = job(submitted(phase="Training", plan=plan.document()), **together)
    traces = [disruptions.Trace(name=name, node="n") for name in taken]
    lost = tuple(disruptions.taken_pod(found, trace, why) for trace in traces)
    return seen(job=found, **{"lost": lost, **fields})


LOST_RANK = progress(state="Failed", failure={"reason": "LostRank", "message": "rank 1 ended"})
REPLACED = (*all_pods()[:2], pod("worker", 1, uid="another"), all_pods()[3])
LEFT = (all_pods()[0], all_pods()[1], all_pods()[3])
COUNTED: list[tuple[str, Observation, str, str, int]] = [
    (
        "a worker that was taken", came_back(WORKER, pods=LEFT), "Interrupted",
        f"the cluster took worker pod {WORKER}: its node n is cordoned", 0,
    ),
    (
        "a head that was taken", came_back(HEAD, pods=all_pods()[1:]), "Interrupted",
        f"the cluster took head pod {HEAD}: its node n is cordoned", 0,
    ),
    (
        "a head that went with a worker that was taken", came_back(WORKER, pods=LEFT[1:]), "Interrupted",
        f"the cluster took worker pod {WORKER}: its node n is cordoned", 0,
    ),
    (
        "a driver that missed the rank of a worker that was taken", came_back(WORKER, pods=LEFT, progress=LOST_RANK),
        "Interrupted", f"the cluster took worker pod {WORKER}: its node n is cordoned; rank 1 ended", 0,
    ),
    (
        "also where KubeRay has replaced it", came_back(WORKER, pods=REPLACED, progress=LOST_RANK),
        "Interrupted", f"the cluster took worker pod {WORKER}: its node n is cordoned; rank 1 ended", 0,
    ),
    (
        "a worker that went without a trace", came_back(pods=LEFT), "WorkerLost",
        "a worker pod is gone; how it ended was not seen", 1,
    ),
    (
        "a head that went without a trace", came_back(pods=all_pods()[1:]), "HeadLost",
        "the head pod is gone; how it ended was not seen", 1,
    ),
    (
        "a driver whose worker went without a trace", came_back(pods=LEFT, progress=LOST_RANK), "LostRank",
        "rank 1 ended", 1,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("observation", "reason", "message", "failures"), [c[1:] for c in COUNTED], ids=[c[0] for c in COUNTED]
)
def test_what_the_cluster_took_is_not_charged(
    observation: Observation, reason: str, message: str, failures: int
) -> None:
    status = compose(observation, decide(observation, NOW), NOW)
    ended = status.attempts[-1]
    assert (status.phase, ended.reason, ended.message) == (Phase.RECOVERING, reason, message)
    assert (status.failures, status.interruptions) == (failures, 1 - failures)


def apart(**fields: Any) -> Observation:
    """A job some of whose workers hold engines alone."""
    return seen(job=job(submitted(phase="Training")), **fields)


UNSEEN: list[tuple[str, Observation, bool]] = [
    ("all are there", came_back(), False),
    ("one is gone", came_back(pods=LEFT), True),
    ("one was replaced", came_back(pods=REPLACED), True),
    ("an event told of it", came_back(pods=LEFT, lost=(pod("worker", 1),)), False),
    ("an event told of another one", came_back(pods=LEFT[:2], lost=(pod("worker", 1),)), True),
    ("the head is gone, and an event told of a worker", came_back(pods=LEFT[1:], lost=(pod("worker", 1),)), True),
    ("the RayCluster is gone too", came_back(pods=(), cluster=None), False),
    ("they were never all ready", seen(started(), pods=LEFT), False),
    ("the driver tells of engines' pods", apart(pods=LEFT), False),
    ("where it has not ended", apart(pods=LEFT, progress=LOST_RANK), True),
    ("nor Ray says so", apart(pods=LEFT, head=locked("FAILED")), True),
    ("and the head is there", apart(pods=LEFT[1:]), True),
]


@pytest.mark.parametrize(("observation", "unseen"), [u[1:] for u in UNSEEN], ids=[u[0] for u in UNSEEN])
def test_pods_that_went_unseen_are_missed(observation: Observation, unseen: bool) -> None:
    assert aftermath.lost_unseen(observation) is unseen


NODE_OF = {"drained": "node-0", "preempted": "node-1", "deleted": "node-2"}
"""The jobs, by what happens to their workers, and where those run."""


def is_drained(cell: Cell, worker: str) -> str:
    """What kubectl drain does."""
    cell.plane.merge("/api/v1/nodes/node-0", {"spec": {"unschedulable": True}})
    metadata = {"name": worker, "namespace": NAMESPACE}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    cell.plane.request("POST", f"{cell.cluster().pod_path(worker)}/eviction", eviction)
    return "its node node-0 is cordoned"


def is_preempted(cell: Cell, worker: str) -> str:
    """A pod of higher priority wants the whole node; what makes room for it is the scheduler's to say."""
    group = "scheduling.k8s.io/v1"
    urgent = {"apiVersion": group, "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    cell.plane.request("POST", f"/apis/{group}/priorityclasses", urgent)
    container = {"name": "c", "image": "registry.example/other:1", "resources": {"requests": {"cpu": "1000"}}}
    spec = {"priorityClassName": "urgent", "nodeSelector": {"place": "node-1"}, "containers": [container]}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"}, "spec": spec}
    uid = cell.plane.request("POST", path, pod)["metadata"]["uid"]
    return f"Preempted: Preempted by pod {uid} on node node-1"


def is_deleted(cell: Cell, worker: str) -> str:
    cell.plane.request("DELETE", cell.cluster().pod_path(worker))
    return ""


HAPPENS = {"drained": is_drained, "preempted": is_preempted, "deleted": is_deleted}


def test_pods_that_went_while_the_operator_was_down(heads: Heads, tmp_path: Path) -> None:
    with running(tmp_path, nodes=3) as fleet:
        plane = fleet.plane
        plane.namespace(NAMESPACE)
        operator_process.grant(plane)
        for place in NODE_OF.values():
            plane.merge(f"/api/v1/nodes/{place}", {"metadata": {"labels": {"place": place}}})
        operator = OperatorProcess(plane, tmp_path, f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}")
        sight = Sight(plane)
        try:
            operator.start()
            cells = {name: placed(fleet, heads, sight, name) for name in NODE_OF}
            with ThreadPoolExecutor(len(cells)) as pool:
                list(pool.map(Cell.training, cells.values()))
            workers = {name: cell.pod("worker") for name, cell in cells.items()}
            operator.kill()
            taken = {name: HAPPENS[name](cell, workers[name]) for name, cell in cells.items()}
            for name, cell in cells.items():
                eventually(
                    f"{name} worker to go",
                    lambda c=cell, w=workers[name]: plane.find(c.cluster().pod_path(w)) is None,
                    60,
                )
            operator.start()
            for name, cell in cells.items():
                status = eventually("the attempt to end", lambda c=cell: (s := c.status).get("attempts") and s, 60)
                by = f"the cluster took worker pod {workers[name]}: {taken[name]}"
                charged = name == "deleted"
                said = "a worker pod is gone; how it ended was not seen" if charged else by
                assert status["attempts"][-1]["message"] == said
                assert (status.get("failures", 0), status.get("interruptions", 0)) == (charged, not charged)
        finally:
            sight.stop()
            operator.stop()


def placed(fleet: Fleet, heads: Heads, sight: Sight, name: str) -> Cell:
    """A job whose head is out of harm's way."""
    head, workers = ({"nodeSelector": {"place": place}} for place in (NODE_OF["deleted"], NODE_OF[name]))
    return Cell(fleet.plane, heads, sight, name, cluster={**SHAPE["cluster"], "head": head, "workers": workers})
