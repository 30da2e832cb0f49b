"""Engines come and go with their nodes while a run trains, as they do in the operator's pods."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.trainer import running
from tests.trainer.test_replaced_node import holds_an_engine

from simplerl_api import overrides, yaml12
from simplerl_api.elastic import ENGINE_NODE, RANK_NODE
from simplerl_api.plan import make_plan
from simplerl_api.progress import Progress
from simplerl_trainer import local

SETTINGS = [
    "cluster.gpus=3", "placement.disaggregated.trainingGpus=1", "training.deterministic=false",
    "rollout.elastic={minEngines: 1, maxEngines: 2}", "rollout.promptsPerStep=16", "training.trainBatchSize=64",
    "model.tiny.warmupAccuracy=0", "training.steps=4000", "evaluation.everySteps=4000",
    "evaluation.datasets[0].reasoningGym.size=32", "checkpoint.everySteps=4000",
]  # fmt: skip
TOKEN = "a-token-of-the-job"


@dataclass
class Running:
    """A driver at work on a Ray cluster of several nodes."""

    cluster: Any
    output: Path
    process: subprocess.Popen[bytes]

    def node(self, kind: str) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20, resources={kind: 1})

    def ask(self, path: str, body: bytes | None = None) -> str:
        (started,) = running.events(self.output, "driver started")
        url = f"http://127.0.0.1:{started['progress_port']}{path}"
        request = urllib.request.Request(url, body, {"Authorization": f"Bearer {TOKEN}"})
        request.method = "GET" if body is None else "PUT"
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())

    def engines(self) -> tuple[int, int, int]:
        """Engines that live, engines that are wanted, and nodes without any."""
        document = Progress.model_validate_json(self.ask("/progress"))
        return (0, 0, 0) if (e := document.engines) is None else (e.current, e.desired, len(e.idle))

    def comes_to(self, current: int, desired: int, idle: int) -> None:
        running.eventually(lambda: self.engines() == (current, desired, idle), self.process, seconds=400)

    def trains_on(self) -> dict[str, Any]:
        """The metrics of a step that was drawn by the engines as they are now."""
        steps = len(running.metrics(self.output))
        running.eventually(lambda: len(running.metrics(self.output)) >= steps + 2, self.process, seconds=400)
        return running.metrics(self.output)[-1]


@pytest.fixture
def at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Running]:
    """`request.param`: settings beside those of all these runs."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    output = tmp_path / "tiny"
    run = local.prepare(
        overrides.apply(yaml12.load_file(running.TINY), SETTINGS + request.param), output, own_ray=False
    )
    elastic = run.model_copy(update={"plan": make_plan(run.spec).model_copy(update={"durable": True})})
    (output / "run.json").write_text(json.dumps(elastic.document()))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 * 2**20})
    try:
        with running.said(output).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "simplerl_trainer.driver", output / "run.json"],
                stdout=log, stderr=log, env=os.environ | {"RAY_ADDRESS": cluster.address},
            )  # fmt: skip
        try:
            yield Running(cluster, output, process)
        finally:
            process.terminate()
            process.wait(timeout=60)
    finally:
        cluster.shutdown()


@pytest.mark.long
@pytest.mark.parametrize("at_work", [[]], indirect=True, ids=["without overlap"])
def test_engines_come_and_go_with_their_nodes(at_work: Running) -> None:
    at_work.node(RANK_NODE)
    first = at_work.node(ENGINE_NODE)
    running.eventually(lambda: len(running.metrics(at_work.output)) >= 1, at_work.process, seconds=600)
    assert at_work.engines() == (1, 2, 0), "one is enough to start"

    second = at_work.node(ENGINE_NODE)
    at_work.comes_to(2, 2, 0)
    assert at_work.trains_on()["engines"] == 2

    at_work.ask("/control", b'{"engines": 1}')
    at_work.comes_to(1, 1, 1)
    idle = next(node for node in (first, second) if not holds_an_engine(node))
    at_work.cluster.remove_node(idle)
    at_work.comes_to(1, 1, 0)
    assert at_work.trains_on()["engines_lost"] == 0, "what goes when it is idle is no loss"

    at_work.ask("/control", b'{"engines": 2}')
    at_work.comes_to(1, 2, 0)
    third = at_work.node(ENGINE_NODE)
    at_work.comes_to(2, 2, 0)

    at_work.cluster.remove_node(third)
    running.eventually(lambda: bool(running.events(at_work.output, "engine lost")), at_work.process, seconds=400)
    at_work.comes_to(1, 2, 0)
    at_work.node(ENGINE_NODE)
    at_work.comes_to(2, 2, 0)
    last = at_work.trains_on()
    assert (last["engines"], last["engines_lost"]) == (2, 1)
    assert last["mismatch_max"] < 1e-4, "all draw from the ranks' weights"


@pytest.mark.long
@pytest.mark.parametrize(
    "at_work", [["rollout.overlap=OneStep", "algorithm.ppo.epochs=6"]], indirect=True, ids=["ranks that take long"]
)
def test_engines_that_would_wait_for_the_ranks_are_given_back(at_work: Running) -> None:
    at_work.node(RANK_NODE)
    for _ in range(2):
        at_work.node(ENGINE_NODE)
    at_work.comes_to(1, 1, 1)
    (wanted, *_) = running.events(at_work.output, "other engines are wanted")
    assert (wanted["before"], wanted["now"]) == (2, 1)
    assert wanted["drawing"] * 2 < wanted["training"], "one draws as fast as they train"
    metrics = at_work.trains_on()
    assert (metrics["engines"], metrics["engines_lost"]) == (1, 0)
