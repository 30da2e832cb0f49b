"""Which events of pods and RayClusters call for a look at once."""

import asyncio
from collections.abc import Sequence

import aiohttp
import pytest
from kubernetes.aio import client
from tests.operator.observations import pod, ray_cluster

from simplerl_api.status import Termination
from simplerl_operator.kubernetes_api import KubernetesApi
from simplerl_operator.observe.job import Key
from simplerl_operator.observe.pods import Pod, Waiting
from simplerl_operator.observe.ray_cluster import RayCluster, RayCondition
from simplerl_operator.operation import SETTLE_SECONDS, Operation
from simplerl_operator.settings import Settings
from simplerl_operator.work_queue import WorkQueue

OOM = Termination(pod="p", container="ray", exit_code=137, reason="OOMKilled")
ON_ITS_WAY = {"ready": False, "phase": "Pending"}


@pytest.mark.parametrize(
    ("one", "comes_up"),
    [
        (pod("worker", **ON_ITS_WAY, scheduled=False), True),
        (pod("worker", **ON_ITS_WAY), True),
        (pod("worker", **ON_ITS_WAY, waiting=(Waiting("ray", "ContainerCreating", "", "i"),)), True),
        (pod("worker", ready=False, phase="Running"), True),
        (pod("worker"), False),
        (pod("worker", **ON_ITS_WAY, unscheduled="0/3 nodes are available"), False),
        (pod("worker", **ON_ITS_WAY, waiting=(Waiting("ray", "ErrImagePull", "not found", "i"),)), False),
        (pod("worker", **ON_ITS_WAY, waiting=(Waiting("ray", "CreateContainerConfigError", "", "i"),)), False),
        (pod("worker", ready=False, terminations=(OOM,)), False),
        (pod("worker", ready=False, phase="Failed"), False),
        (pod("worker", **ON_ITS_WAY, deleting=True), False),
    ],
)
def test_a_pod_comes_up_while_nothing_keeps_it_from_being_ready(one: Pod, comes_up: bool) -> None:
    assert one.comes_up is comes_up


@pytest.mark.parametrize(
    ("one", "thrives"),
    [
        (ray_cluster(), True),
        (ray_cluster(conditions={}), True),
        (ray_cluster(conditions={"ReplicaFailure": RayCondition("False", "F", "")}), True),
        (ray_cluster(conditions={"ReplicaFailure": RayCondition("True", "FailedCreate", "quota")}), False),
        (ray_cluster(deleting=True), False),
        (ray_cluster(suspended=True), False),
    ],
)
def test_a_ray_cluster_thrives_while_there_is_nothing_to_say_of_it(one: RayCluster, thrives: bool) -> None:
    assert one.thrives is thrives


THRIVES, AILS = ray_cluster(), ray_cluster(conditions={"ReplicaFailure": RayCondition("True", "FailedCreate", "quota")})


@pytest.mark.parametrize(
    ("events", "looks"),
    [
        ([THRIVES, THRIVES], [False, False]),
        ([AILS, AILS], [True, True]),
        ([THRIVES, AILS, THRIVES, THRIVES], [False, True, True, False]),
        ([AILS, THRIVES, AILS, THRIVES], [True, True, True, True]),
        ([THRIVES, None], [False, True]),
        # the next of the name is another one
        ([AILS, None, THRIVES], [True, True, False]),
    ],
)  # fmt: skip
async def test_that_a_ray_cluster_thrives_again_is_news_once(
    events: Sequence[RayCluster | None], looks: Sequence[bool]
) -> None:
    """None: it is gone."""
    looked: list[Key] = []

    async def look(key: Key) -> None:
        looked.append(key)

    async with aiohttp.ClientSession() as session:
        api = KubernetesApi(client.Configuration())
        operation = Operation(Settings(trainer_image="registry.example/trainer:1"), api, session)
        operation.queue = WorkQueue(look, workers=1)
        operation.queue.start()
        try:
            found = []
            for event in events:
                operation.ray_cluster_changed(("n", "tiny"), event or THRIVES, gone=event is None)
                await asyncio.sleep(SETTLE_SECONDS + 0.1)
                found.append(bool(looked))
                looked.clear()
        finally:
            await operation.queue.stop()
            await api.close()
    assert found == looks
