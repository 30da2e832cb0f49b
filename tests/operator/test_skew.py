"""A cluster whose clock is off from the operator's: what was written there is no older and no younger for it."""

import asyncio
import time
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import aiohttp
import pytest
from kubernetes.aio import client, config
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane
from tests.operator.observations import NOW, UID, all_pods, job, ray_cluster, seen, started

from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.rules import decide
from simplerl_operator.kubernetes_api import KubernetesApi
from simplerl_operator.observe import pods
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.observation import Observation
from simplerl_operator.observe.observer import Observer
from simplerl_operator.progress_client import ProgressClient
from simplerl_operator.ray_jobs import RayJobs
from simplerl_operator.server_clock import ServerClock
from simplerl_operator.tokens import Tokens

OFF = [pytest.param(off, id=f"{off:+.0f} s") for off in (0.0, 600.0, -600.0)]
"""By how much the cluster's clock is ahead."""


def read(off: float, **times: float) -> pods.Pod:
    """A pod of which the cluster wrote so many seconds ago."""
    metadata: dict[str, Any] = {"name": "w", "uid": "u", "creationTimestamp": rfc3339(NOW + off)}
    if "due" in times:
        metadata["deletionTimestamp"] = rfc3339(NOW + off - times["due"])
    written = rfc3339(NOW + off - times.get("placed", 0))
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": written}
    found = pods.read({"metadata": metadata, "spec": {"containers": [{}]}, "status": {"conditions": [placed]}})
    there = ServerClock(lambda: 0.0)
    there.hear(formatdate(NOW + off, usegmt=True))
    return pods.by_our_clock(found, there.ahead(NOW))


def half_placed(off: float, ago: float) -> Observation:
    """Of four pods one has had its node for so long."""
    first, *others = all_pods(phase="Pending", ready=False, scheduled=False, unscheduled="no room")
    held = replace(first, scheduled=True, unscheduled="", placed=read(off, placed=ago).placed)
    return seen(started(7200), cluster=ray_cluster(conditions={}), pods=(held, *others))


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize(("ago", "reason"), [(0, "Unschedulable"), (595, "Unschedulable"), (601, "HalfPlaced")])
def test_half_a_job_holds_its_nodes_for_ten_minutes(off: float, ago: float, reason: str) -> None:
    decision = decide(half_placed(off, ago), NOW)
    assert decision.reason == reason
    if reason == "Unschedulable":
        assert decision.wake == min(10.0, 600 - ago)


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize(("over", "outstays"), [(-30, False), (4, False), (6, True)])
def test_a_pod_may_stay_for_its_grace_period(off: float, over: float, outstays: bool) -> None:
    assert read(off, due=over).outstays(NOW) is outstays


DATES: list[tuple[str, list[str], float]] = [
    ("nothing told", [], 0.0),
    ("no date at all", [""], 0.0),
    ("none that can be read", ["soon"], 0.0),
    ("what was told before stays", [formatdate(NOW + 60), "soon"], 60.0),
    ("the newest counts", [formatdate(NOW + 60), formatdate(NOW - 60)], -60.0),
]


@pytest.mark.parametrize(("dates", "ahead"), [d[1:] for d in DATES], ids=[d[0] for d in DATES])
def test_the_clusters_clock_is_known_by_its_answers(dates: list[str], ahead: float) -> None:
    there = ServerClock(lambda: 7.0)
    for date in dates:
        there.hear(date)
    assert there.ahead(NOW) == ahead


def test_it_goes_on_between_two_answers() -> None:
    at = [100.0]
    there = ServerClock(lambda: at[0])
    there.hear(formatdate(NOW + 60))
    at[0] = 130.0
    there.hear(formatdate(NOW + 60))  # the same second, heard late
    assert there.ahead(NOW) == 90.0


async def test_the_node_of_a_pod_that_goes_is_left_alone_for_its_time(plane: ControlPlane, namespace: str) -> None:
    """With a real API server, and operators whose own clocks are off."""
    labels = {"simplerl.io/job-uid": UID, "simplerl.io/role": "head", "simplerl.io/attempt": "1"}
    metadata, path = {"name": "head", "labels": labels}, f"/api/v1/namespaces/{namespace}/pods"
    spec = {"nodeName": "gone", "containers": [{"name": "c", "image": "registry.example/c:1"}]}
    plane.request("POST", path, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    configuration = client.Configuration()
    await config.load_kube_config(str(plane.kubeconfig(ADMIN_TOKEN)), client_configuration=configuration)
    api, tokens = KubernetesApi(configuration), Tokens()
    tokens.key = b"key"
    last = {"number": 1, "reason": "HeadLost", "message": "it went"}
    recovering = replace(job(started(phase="Recovering", attempts=[last])), namespace=namespace)

    async with aiohttp.ClientSession() as session:

        async def dead(off: float) -> frozenset[str]:
            def clock() -> float:
                return time.time() + off

            progress = ProgressClient(session, lambda _: None, clock)
            observer = Observer(api, RayJobs(session), progress, Evidence(), tokens, None, clock, reads_nodes=True)
            return (await observer.look(recovering)).dead_nodes

        try:
            plane.request("DELETE", f"{path}/head", {"gracePeriodSeconds": 60})
            assert [await dead(off) for off in (0, 600, -600)] == [frozenset()] * 3
            plane.request("DELETE", f"{path}/head", {"gracePeriodSeconds": 1})
            await asyncio.sleep(8)
            assert [await dead(off) for off in (0, 600, -600)] == [{"gone"}] * 3
        finally:
            plane.request("DELETE", f"{path}/head", {"gracePeriodSeconds": 0})
            await api.close()
