"""Nodes that come and go, on a real Ray cluster of several nodes."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import ray
from tests.trainer import running

from simplerl_api import overrides, validation, yaml12
from simplerl_api.elastic import ENGINE_NODE, RANK_NODE
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Plan, make_plan
from simplerl_trainer import placement
from simplerl_trainer.places import Places


def plan(least: int) -> Plan:
    """A rank, and up to two engines on nodes of their own."""
    elastic = f"rollout.elastic={{minEngines: {least}, maxEngines: 2}}"
    settings = ["cluster.gpus=3", "placement.disaggregated.trainingGpus=1", "training.deterministic=false", elastic]
    return make_plan(validation.parse(overrides.apply(yaml12.load_file(running.TINY), settings)).spec)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 * 2**20})
    try:
        node(made, RANK_NODE)
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def node(cluster: Any, kind: str) -> Any:
    return cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20, resources={kind: 1})


def eventually(condition: Callable[[], bool]) -> None:
    bound = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < bound, "not within 60 s"
        time.sleep(0.2)


def home(places: Places, number: int) -> str:
    """The id of a node as an actor in its place sees it."""
    slot = next(s for s in plan(1).slots() if s.node == number)
    options = placement.options([slot], places, cpu_only=True)
    found: str = ray.get(
        ray.remote(where).options(**{k: v for k, v in options.items() if k != "max_restarts"}).remote()
    )
    return found


def where() -> str:
    return str(ray.get_runtime_context().get_node_id())


def test_nodes_of_engines_come_and_go(cluster: Any) -> None:
    first = node(cluster, ENGINE_NODE)
    places = asyncio.run(placement.reserve(plan(1), cpu_only=True, seconds=60))
    assert list(places.there()) in ([0, 1], [0, 2]), "one of the two nodes is there, and enough to start"
    (there,) = set(places.there()) - {0}
    assert home(places, there) == first.node_id
    assert home(places, 0) not in (first.node_id, cluster.head_node.node_id), "ranks live on their own kind of node"

    second = node(cluster, ENGINE_NODE)
    eventually(lambda: list(places.there()) == [0, 1, 2])
    assert {home(places, 1), home(places, 2)} == {first.node_id, second.node_id}
    assert places.idle() == []

    kept = home(places, 1)
    assert list(places.hold({1})) == [2]
    eventually(lambda: len(places.idle()) == 1)
    assert list(places.there()) == [0, 1]
    assert home(places, 1) == kept
    gone = first if second.node_id == kept else second
    cluster.remove_node(gone)
    eventually(lambda: places.idle() == [])

    assert list(places.hold({1, 2})) == []
    assert list(places.there()) == [0, 1], "it is held before it has come"
    third = node(cluster, ENGINE_NODE)
    eventually(lambda: list(places.there()) == [0, 1, 2])
    assert home(places, 2) == third.node_id

    cluster.remove_node(third)
    eventually(lambda: list(places.there()) == [0, 1])
    fourth = node(cluster, ENGINE_NODE)
    eventually(lambda: list(places.there()) == [0, 1, 2])
    assert home(places, 2) == fourth.node_id, "a node that was lost is replaced"


def test_what_is_missing_of_the_least_is_said(cluster: Any) -> None:
    with pytest.raises(TrainerFailure, match=r"wanted 2 x CPU:1 .* it has CPU:1, which is 1 of the 2 nodes") as failure:
        asyncio.run(placement.reserve(plan(1), cpu_only=True, seconds=2))
    assert failure.value.reason is FailureReason.PLACEMENT_TIMEOUT


def test_no_more_nodes_are_held_than_are_wanted(cluster: Any) -> None:
    for _ in range(2):
        node(cluster, ENGINE_NODE)
    places = asyncio.run(placement.reserve(plan(1), cpu_only=True, seconds=60, engines=1))
    assert list(places.there()) == [0, 1]
    assert len(places.idle()) == 1
