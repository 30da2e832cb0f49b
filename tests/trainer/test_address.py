"""`simplerl train --address`: the same job on a Ray cluster that somebody else started."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.trainer import running

from simplerl_api.failures import EXIT_CODES, FailureReason

RAY = Path(sys.executable).with_name("ray")
ENVIRONMENT = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Ray head with two CPUs, on ports and in a folder of its own; its address and its process."""
    port, client, agent = free_ports(3)
    folder = tmp_path_factory.mktemp("ray", numbered=True)
    command = [
        RAY, "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2",
        f"--ray-client-server-port={client}", f"--dashboard-agent-listen-port={agent}", "--include-dashboard=false",
        f"--temp-dir={folder}", f"--object-store-memory={200 * 2**20}",
    ]  # fmt: skip
    with (folder / "said.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=ENVIRONMENT, start_new_session=True)
    try:
        running.eventually(lambda: b"--address=" in (folder / "said.txt").read_bytes(), process, 90)
        yield f"127.0.0.1:{port}", process
    finally:
        family = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(timeout=60)
        _, alive = psutil.wait_procs(family, timeout=30)
        for child in alive:
            child.kill()


@pytest.mark.long
def test_a_job_trains_on_a_ray_cluster_that_lives_on_afterwards(
    cluster: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    address, head = cluster
    settings = [
        "placement={colocated: {}}", "cluster={gpus: 1, gpusPerNode: 1, cpuOnly: true}", "evaluation=null",
        "training.steps=2", "rollout.promptsPerStep=8", "training.trainBatchSize=32", "model.tiny.warmupAccuracy=0",
    ]  # fmt: skip
    output = tmp_path / "run"
    words = ["train", running.TINY, "--output", output, "--address", address]
    words += [w for s in settings for w in ("--set", s)]
    with running.said(output).open("wb") as log:
        ended = subprocess.run([running.SIMPLERL, *words], stdout=log, stderr=log, env=ENVIRONMENT, timeout=300)
    assert ended.returncode == 0, running.said(output).read_text()
    assert [line["step"] for line in running.metrics(output)] == [1, 2]
    assert head.poll() is None, "the cluster is not ours to end"
    actors = [p for p in psutil.Process(head.pid).children(recursive=True) if "Actor" in " ".join(p.cmdline())]
    assert actors == [], "nothing of the run is left on it"


def test_an_address_where_no_ray_listens_ends_with_a_sentence(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    words = ["train", running.TINY, "--output", tmp_path / "run", "--address", f"127.0.0.1:{port}"]
    done = subprocess.run(
        [running.SIMPLERL, *words], capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False
    )
    assert done.returncode == EXIT_CODES[FailureReason.PLACEMENT_TIMEOUT]
    assert f"no Ray cluster answers at 127.0.0.1:{port}" in done.stdout + done.stderr
