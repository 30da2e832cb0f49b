"""Every fault in every phase, with real KubeRay, scheduler and garbage collector on kwok's nodes: the attempt ends with
its reason, is charged or not, the next one begins once the pods are gone and in the same ones where they were well, and
what a job held is free in the end. All cells live at the same time in one control plane."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from benchmarks.operator.plane import Fleet, running
from tests.operator import documents, operator_process
from tests.operator.control_plane import ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.kuberay import Cluster
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

NAMESPACE = "faults"
SHAPE: dict[str, Any] = {
    "cluster": {"gpus": 1, "gpusPerNode": 1, "cpuOnly": True},
    "placement": {"colocated": {}},
    "recovery": {"backoffLimit": 1, "drainSeconds": 10},
}
BOUND = 90.0
"""Seconds for each thing that is waited for; all cells and other tests share the machine."""


class Sight:
    """All jobs as they are, read twice a second for all cells together."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._found: dict[str, dict[str, Any]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def status(self, name: str) -> dict[str, Any]:
        return self._found.get(name, {}).get("status", {})

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(20)

    def _look(self) -> None:
        path = f"/apis/simplerl.io/v1alpha1/namespaces/{NAMESPACE}/simplerljobs"
        while not self._ended.wait(0.5):
            with contextlib.suppress(OSError):  # one look that failed is no news
                self._found = {item["metadata"]["name"]: item for item in self._plane.request("GET", path)["items"]}


class Cell(Life):
    """One job, whose pods KubeRay makes and kwok runs."""

    def __init__(self, plane: ControlPlane, heads: Heads, sight: Sight, name: str, **sections: Any) -> None:
        self._sight = sight
        super().__init__(plane, heads, NAMESPACE, name, **(SHAPE | sections))

    @property
    def status(self) -> dict[str, Any]:
        return self._sight.status(self.name)

    def reaches(self, phase: str, reason: str | None = None, seconds: float = BOUND) -> dict[str, Any]:
        return super().reaches(phase, reason, seconds)

    def cluster(self) -> Cluster:
        return Running(self.plane, self.namespace, self.cluster_name)

    def pods(self) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=simplerl.io/job={self.name}"
        found: list[dict[str, Any]] = self.plane.request("GET", path)["items"]
        return found

    def pod(self, role: str) -> str:
        """The name of the attempt's head or worker."""
        labels = ((p["metadata"]["name"], p["metadata"]["labels"]) for p in self.pods())
        return next(name for name, label in labels if label["ray.io/node-type"] == role)


class Running(Cluster):
    """A RayCluster whose pods get ready by themselves."""

    def all_ready(self) -> list[str]:
        return []


def provisioning(cell: Cell) -> None:
    """All pods are ready, and the head does not answer yet."""
    cell.head.up = False
    cell.reaches("Provisioning", "ProvingTokenAuth")


def starting(cell: Cell) -> None:
    cell.submitted()


def training(cell: Cell) -> None:
    cell.training()


def draining(cell: Cell) -> None:
    """It is being suspended, and the driver takes its time."""
    cell.training()
    cell.change(suspend=True)
    cell.reaches("Suspending", "Draining")


PHASES: dict[str, Callable[[Cell], None]] = {
    "Provisioning": provisioning, "Starting": starting, "Training": training, "Suspending": draining,
}  # fmt: skip


def ends(role: str) -> Callable[[Cell], None]:
    return lambda cell: cell.cluster().end(cell.pod(role), 137, "OOMKilled")


def is_taken(role: str, reason: str) -> Callable[[Cell], None]:
    return lambda cell: cell.cluster().take(cell.pod(role), reason, "the cluster's own words")


def is_deleted(role: str) -> Callable[[Cell], None]:
    return lambda cell: cell.plane.request("DELETE", cell.cluster().pod_path(cell.pod(role)))


def cluster_goes(cell: Cell) -> None:
    cell.plane.request("DELETE", cell.cluster().path, {"propagationPolicy": "Background"})


def driver_fails(cell: Cell) -> None:
    cell.head.say(state="Failed", failure={"reason": "LostRank", "message": "rank 0 ended"})


def driver_is_killed(cell: Cell) -> None:
    cell.head.jobs[cell.cluster_name] |= {"status": "FAILED", "driver_exit_code": -9}
    cell.head.progress = None


def driver_is_forgotten(cell: Cell) -> None:
    cell.head.jobs.clear()
    cell.head.progress = None


def driver_drains(cell: Cell) -> None:
    cell.head.say(state="Drained")


Fault = tuple[Callable[[Cell], None], str, tuple[int, int], bool]
"""What happens, the attempt's reason, failures and interruptions, and whether the pods stay."""
OF_PODS: dict[str, Fault] = {
    "head out of memory": (ends("head"), "HeadLost", (1, 0), False),
    "worker out of memory": (ends("worker"), "WorkerLost", (1, 0), False),
    "head deleted": (is_deleted("head"), "HeadLost", (1, 0), False),
    "worker deleted": (is_deleted("worker"), "WorkerLost", (1, 0), False),
    "head preempted": (is_taken("head", "PreemptionByScheduler"), "Interrupted", (0, 1), False),
    "worker evicted": (is_taken("worker", "EvictionByEvictionAPI"), "Interrupted", (0, 1), False),
    "worker's node gone": (is_taken("worker", "DeletionByTaintManager"), "Interrupted", (0, 1), False),
    "RayCluster deleted": (cluster_goes, "ClusterLost", (1, 0), False),
}
OF_DRIVERS: dict[str, Fault] = {
    "driver failed": (driver_fails, "LostRank", (1, 0), True),
    "driver killed": (driver_is_killed, "DriverFailed", (1, 0), True),
    "driver forgotten": (driver_is_forgotten, "SubmissionLost", (1, 0), False),
    "driver drained": (driver_drains, "Drained", (0, 1), True),
}
CELLS: dict[str, tuple[str, Fault]] = {
    f"{name}, {phase}": (phase, fault)
    for phase in PHASES
    for name, fault in (OF_PODS | (OF_DRIVERS if phase in ("Starting", "Training") else {})).items()
}


@pytest.fixture(scope="module")
def cells(heads: Heads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """All cells, under way."""
    with running(tmp_path_factory.mktemp("faults"), nodes=2) as fleet:
        fleet.plane.namespace(NAMESPACE)
        operator_process.grant(fleet.plane)
        address = f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}"
        operator = OperatorProcess(fleet.plane, tmp_path_factory.mktemp("operator"), address)
        sight = Sight(fleet.plane)
        pool = ThreadPoolExecutor(len(CELLS))
        try:
            operator.start()
            yield {name: pool.submit(lead, fleet, heads, sight, i, name) for i, name in enumerate(CELLS)}
        finally:
            pool.shutdown(cancel_futures=True)
            sight.stop()
            operator.stop()


def lead(fleet: Fleet, heads: Heads, sight: Sight, number: int, name: str) -> None:
    """One cell from its beginning to its end."""
    phase, (happens, reason, counts, in_place) = CELLS[name]
    time.sleep(0.2 * number)  # so that one head that is made does not wait for all others
    cell = Cell(fleet.plane, heads, sight, f"cell-{number}")
    PHASES[phase](cell)
    first = cell.cluster_name
    uids = {pod["metadata"]["uid"] for pod in cell.pods()}
    happens(cell)
    if phase == "Suspending":
        reason, counts, in_place = "Suspended", (0, 0), False
        status = cell.reaches("Suspended")
        assert cell.pods() == []
        cell.change(suspend=False)
    else:
        status = eventually("the attempt to end", lambda: (s := cell.status).get("attempts") and s, BOUND)
    ended = status["attempts"][-1]
    assert (ended["number"], ended["reason"]) == (1, reason), ended
    assert (status.get("failures", 0), status.get("interruptions", 0)) == counts

    again = f"{first}-r2" if in_place else f"{first.removesuffix('1')}2"
    if not in_place:
        cell.attempt = 2
    cell.head.progress = documents.progress(again, state="Training", step=1)
    status = eventually(
        "the next attempt to train",
        lambda: (s := cell.status).get("attempt") == 2 and s["phase"] == "Training" and s,
        BOUND,
    )
    assert (status["cluster"]["name"], status["cluster"]["submissionId"]) == (cell.cluster_name, again)
    now = {pod["metadata"]["uid"] for pod in cell.pods()}
    assert (now == uids) if in_place else not (now & uids), "attempts never overlap"
    cell.head.say(state="Succeeded", step=60)
    cell.reaches("Succeeded", "Completed")
    clusters = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters"
    eventually(
        "everything to be free",
        lambda: cell.pods() == [] and cell.plane.find(f"{clusters}/{cell.cluster_name}") is None,
        BOUND,
    )


@pytest.mark.parametrize("cell", CELLS)
def test_a_fault_ends_as_it_should(cells: dict[str, Future[None]], cell: str) -> None:
    cells[cell].result(240)
