"""Which events of pods and RayClusters call for a look at once."""

import pytest
from tests.operator.observations import pod, ray_cluster

from simplerl_api.status import Termination
from simplerl_operator.observe.pods import Pod, Waiting
from simplerl_operator.observe.ray_cluster import RayCluster, RayCondition

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
