"""The plan's slots on Ray's nodes."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest
import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import PlacementKind, Plan
from simplerl_api.spec.cluster import Resources
from simplerl_api.spec.training import Precision, ZeroStage
from simplerl_trainer import placement


def plan(nodes: int, per_node: int) -> Plan:
    return Plan(
        placement=PlacementKind.COLOCATED,
        gpus=nodes * per_node,
        nodes=nodes,
        gpus_per_node=per_node,
        ranks=nodes * per_node,
        engines=nodes * per_node,
        zero_stage=ZeroStage.PARAMETERS,
        precision=Precision.FP32,
        optimizer_steps_per_step=1,
        durable=False,
        head_resources=Resources(),
        worker_resources=Resources(),
        shm_size="1Gi",
    )


@pytest.mark.parametrize(
    ("nodes", "per_node", "cpu_only", "one_machine", "bundles", "strategy"),
    [
        pytest.param(4, 8, False, False, [{"GPU": 8.0}] * 4, "STRICT_SPREAD", id="a node each for 8 GPUs"),
        pytest.param(1, 2, False, False, [{"GPU": 2.0}], "PACK", id="one node"),
        pytest.param(3, 1, True, False, [{"CPU": 1.0}] * 3, "STRICT_SPREAD", id="CPUs stand for GPUs"),
        pytest.param(3, 1, True, True, [{"CPU": 1.0}] * 3, "PACK", id="one machine stands for three nodes"),
    ],
)
def test_a_bundle_a_node(
    nodes: int, per_node: int, cpu_only: bool, one_machine: bool, bundles: Sequence[Mapping[str, float]], strategy: str
) -> None:
    assert placement.bundles(plan(nodes, per_node), cpu_only) == bundles
    assert placement.strategy(plan(nodes, per_node), one_machine) == strategy


# Fault 36 (open-r1#617, open-instruct#1431, OpenRLHF#930, verl#539): a placement group that is waited for without end.
@pytest.mark.parametrize(
    ("per_node", "cpu_only", "offered", "free", "said"),
    [
        pytest.param(
            1,
            True,
            [{"CPU": 1.0, "memory": 5.0}, {"CPU": 1.0}, {}],
            2.0,
            "the run wanted 3 x CPU:1 and the cluster did not offer it within 600 s; it has CPU:1, CPU:1, which is 2 "
            "of the 3 nodes: wait for its pods, or lower cluster.gpus or cluster.gpusPerNode",
            id="too few nodes",
        ),
        pytest.param(
            8,
            False,
            [{"GPU": 8.0, "CPU": 64.0}, {"GPU": 4.0}, {"GPU": 4.0}, {"GPU": 8.0}],
            24.0,
            "the run wanted 3 x GPU:8 and the cluster did not offer it within 600 s; it has GPU:8, GPU:8, GPU:4, "
            "GPU:4, which is 2 of the 3 nodes: wait for its pods, or lower cluster.gpus or cluster.gpusPerNode",
            id="GPUs enough, but some nodes are too small",
        ),
        pytest.param(
            8,
            False,
            [{"CPU": 64.0}, {"CPU": 64.0}, {"CPU": 4.0}],
            0.0,
            "the run wanted 3 x GPU:8 and the cluster did not offer it within 600 s; it has no node with a GPU, only "
            "CPU:4, CPU:64: check cluster.gpuResource, or set cluster.cpuOnly to train on CPUs",
            id="the wrong kind",
        ),
        pytest.param(
            8,
            False,
            [{"GPU": 8.0}] * 3,
            12.0,
            "the run wanted 3 x GPU:8 and the cluster did not offer it within 600 s; it has GPU:8, GPU:8, GPU:8, of "
            "which 12 are free: wait until other work ends, or lower cluster.gpus",
            id="taken by others",
        ),
        pytest.param(
            1,
            True,
            [{"memory": 5.0}],
            0.0,
            "the run wanted 3 x CPU:1 and the cluster did not offer it within 600 s; it has no node with a CPU: wait "
            "for its pods",
            id="nothing",
        ),
    ],
)
def test_what_is_missing_is_said(
    per_node: int, cpu_only: bool, offered: Sequence[Mapping[str, float]], free: float, said: str
) -> None:
    assert placement.missing(plan(3, per_node), cpu_only, offered, free, 600) == said


@pytest.mark.parametrize(
    ("cpu_only", "slots", "devices"), [(True, [3], None), (False, [3], "1"), (False, [2, 3], "0,1")]
)
def test_an_actor_sees_its_slots_gpus_alone(cpu_only: bool, slots: Sequence[int], devices: str | None) -> None:
    environment = placement.environment([plan(2, 2).slots()[i] for i in slots], cpu_only)
    assert environment.get("CUDA_VISIBLE_DEVICES") == devices
    assert environment["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] == "0"
    assert ("TORCH_COMPILE_DISABLE" in environment) is cpu_only


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
    ray.init(
        address="local",
        num_cpus=3,
        num_gpus=2,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


class Where:
    """Tells the environment of its process."""

    def tell(self, name: str) -> str | None:
        return os.environ.get(name)


def test_actors_of_all_slots_start_in_bundles_that_take_everything(cluster: None) -> None:
    the_plan = plan(3, 1)
    places = asyncio.run(placement.reserve(the_plan, cpu_only=True, seconds=30, one_machine=True))
    assert ray.available_resources().get("CPU", 0) == 0
    where = ray.remote(Where)
    actors = [
        where.options(**placement.engine_options([s], places, cpu_only=True)).remote()
        for s in the_plan.slots()
        for _ in range(2)
    ]
    assert ray.get([a.tell.remote("OMP_NUM_THREADS") for a in actors], timeout=60) == ["1"] * 6
    for actor in actors:
        ray.kill(actor)
    places.give_up()


def test_an_actor_that_asks_for_no_gpu_still_sees_the_one_of_its_slot(cluster: None) -> None:
    the_plan = plan(1, 2)
    places = asyncio.run(placement.reserve(the_plan, cpu_only=False, seconds=30))
    actors = [
        ray.remote(Where).options(**placement.options([s], places, cpu_only=False)).remote() for s in the_plan.slots()
    ]
    assert ray.get([a.tell.remote("CUDA_VISIBLE_DEVICES") for a in actors], timeout=60) == ["0", "1"]
    places.give_up()


def test_a_cluster_that_is_too_small_ends_the_wait_with_a_sentence(cluster: None) -> None:
    with pytest.raises(TrainerFailure, match=r"wanted 1 x CPU:4 .* within 1 s; it has CPU:3, which is 0 of") as failure:
        asyncio.run(placement.reserve(plan(1, 4), cpu_only=True, seconds=1))
    assert failure.value.reason is FailureReason.PLACEMENT_TIMEOUT


def test_a_machine_of_ones_own_that_is_too_small_is_not_waited_for(cluster: None) -> None:
    began = time.monotonic()
    with pytest.raises(TrainerFailure, match=r"wanted 1 x GPU:4 .* it has GPU:2, which is 0 of the 1 nodes"):
        asyncio.run(placement.reserve(plan(1, 4), cpu_only=False, seconds=60, one_machine=True))
    assert time.monotonic() - began < 5


def test_gpus_that_another_run_holds_are_said_to_be_taken(cluster: None) -> None:
    first = asyncio.run(placement.reserve(plan(1, 1), cpu_only=False, seconds=30))
    with pytest.raises(TrainerFailure, match="it has GPU:2, of which 1 are free: wait until other work ends"):
        asyncio.run(placement.reserve(plan(1, 2), cpu_only=False, seconds=1))
    first.give_up()
