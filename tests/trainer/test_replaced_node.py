"""A node that holds an engine and no rank goes, and another one comes in its place: as KubeRay replaces a pod."""

import os
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.trainer import running

SETTINGS = [
    "rollout.promptsPerStep=16", "training.trainBatchSize=64", "model.tiny.warmupAccuracy=0", "training.steps=400",
    "evaluation.everySteps=400", "evaluation.datasets[0].reasoningGym.size=32", "checkpoint.everySteps=400",
]  # fmt: skip


def holds_an_engine(node: Any) -> bool:
    """Whether an engine lives on one of Ray's nodes; other runs of this machine have engines of their own."""
    children = [c for p in node.all_processes["raylet"] for c in psutil.Process(p.process.pid).children()]
    return any("EngineActor" in " ".join(c.cmdline()) for c in children)


@pytest.mark.long
def test_an_engine_whose_node_is_replaced_joins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    output = tmp_path / "tiny"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 * 2**20})
    try:
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20) for _ in range(3)]
        command = [running.SIMPLERL, "train", running.TINY, "--output", output, "--address", cluster.address]
        command += [word for setting in SETTINGS for word in ("--set", setting)]
        with running.said(output).open("wb") as log:
            run = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)
        try:
            running.eventually(lambda: len(running.metrics(output)) >= 2, run, seconds=600)
            (home,) = [node for node in nodes if holds_an_engine(node)]
            cluster.remove_node(home)
            cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
            running.eventually(lambda: bool(running.events(output, "engine lost")), run, seconds=600)
            steps = len(running.metrics(output))
            running.eventually(lambda: len(running.metrics(output)) >= steps + 3, run, seconds=900)
        finally:
            run.terminate()
            run.wait(timeout=60)
    finally:
        cluster.shutdown()
    last = running.metrics(output)[-1]
    assert (last["engines"], last["engines_lost"]) == (1, 1)
    assert last["mismatch_max"] < 1e-4, "the new engine draws from the ranks' weights"
