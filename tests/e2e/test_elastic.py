"""Pods of engines come and go in a real cluster: KubeRay makes and removes them, Ray places engines on them."""

from typing import Any

import pytest
from hack.demo import volumes
from tests.e2e import drill as drills
from tests.e2e.conftest import Installed
from tests.e2e.drill import Drill, step

pytestmark = pytest.mark.long


def engine_pods(job: Drill) -> dict[str, dict[str, Any]]:
    """Those of KubeRay's group of engines, by name."""
    return {p["metadata"]["name"]: p for p in job.pods() if p["metadata"]["labels"].get("ray.io/group") == "engines"}


def workers(ready: int, desired: int) -> Any:
    """Whether so many worker pods run, of as many as are wanted."""

    def holds(status: dict[str, Any]) -> bool:
        cluster = status.get("cluster", {})
        return (cluster.get("readyWorkers"), cluster.get("desiredWorkers")) == (ready, desired)

    return holds


def trains_on(job: Drill, steps: int = 3) -> dict[str, Any]:
    goal = step(job.status) + steps
    return job.until("more steps", lambda s: s.get("phase") == "Training" and step(s) >= goal, 300)


def test_pods_of_engines_come_and_go(installed: Installed) -> None:
    job = Drill(installed.cluster, "elastic")
    job.delete()
    volumes.claim(installed.cluster, drills.CLAIM)
    try:
        job.apply(
            placement={"disaggregated": {"trainingGpus": 1}},
            rollout={"elastic": {"minEngines": 1, "maxEngines": 2}},
        )
        job.until("both engines", lambda s: s.get("phase") == "Training" and workers(3, 3)(s))
        trains_on(job)
        both = engine_pods(job)
        assert len(both) == 2
        assert all(not drills.processes(pod, drills.RANK) for pod in both.values()), "ranks have pods of their own"

        job.patch(rollout={"engines": 1})
        job.until("one engine's pod to go", workers(2, 2), 300)
        (left,) = engine_pods(job)
        assert left in both
        assert drills.processes(both[left], drills.ENGINE), "the one that stays is the one that draws"
        trains_on(job)

        job.patch(rollout={"engines": 2})
        job.until("another pod", workers(3, 3), 300)
        assert left in engine_pods(job)
        trains_on(job)

        job.delete_pod(engine_pods(job)[left])
        job.until("its end to be seen", lambda s: workers(2, 3)(s) or left not in engine_pods(job), 120)
        status = job.until("one in its place", workers(3, 3), 300)
        status = trains_on(job)
        assert (status["attempt"], status.get("attempts", []), status.get("failures", 0)) == (1, [], 0)
        steps = job.steps()
        assert steps == list(range(1, len(steps) + 1)), "no step is missing or done twice"
    finally:
        job.delete()
