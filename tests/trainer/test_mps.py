"""The MPS daemon's life, with a stand-in for NVIDIA's program; tests/gpu has the real one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray

from simplerl_trainer import mps
from simplerl_trainer.actors import NodeActor

CONTROL = """#!/bin/sh
if [ "$1" = -d ]; then {start}; fi
while read -r line; do echo "$line in $CUDA_MPS_PIPE_DIRECTORY" >>{said}; done
"""


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in writes what it is told."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    stand_in(tmp_path, "echo started; exit 0")
    return tmp_path / "said.txt"


def stand_in(folder: Path, start: str) -> None:
    control = folder / mps.CONTROL
    control.write_text(CONTROL.format(start=start, said=folder / "said.txt"), encoding="utf-8")
    control.chmod(0o755)


def test_a_daemon_has_folders_of_its_own_and_ends_with_stop(said: Path) -> None:
    one, other = mps.Daemon(), mps.Daemon()
    pipes = [Path(d.environment["CUDA_MPS_PIPE_DIRECTORY"]) for d in (one, other)]
    assert all(p.is_dir() for p in pipes)
    assert pipes[0] != pipes[1]
    one.stop()
    assert said.read_text(encoding="utf-8") == f"quit -t 5 in {pipes[0]}\n"
    assert not pipes[0].exists()
    other.stop()


def told(said: Path) -> str:
    """The line that the stand-in was told, once it was."""
    bound = time.monotonic() + 20
    text = ""
    while not text.endswith("\n") and time.monotonic() < bound:
        time.sleep(0.05)
        text = said.read_text(encoding="utf-8") if said.exists() else ""
    return text


def test_a_daemon_ends_when_the_process_that_started_it_is_killed(said: Path) -> None:
    program = "import os; from simplerl_trainer import mps; d = mps.Daemon(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == -9
    assert told(said).startswith("quit -t 5 in /tmp/simplerl-mps-")


def test_a_daemon_ends_with_rays_actor_whose_children_ray_kills(said: Path) -> None:
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
    ray.init("local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    try:
        node = ray.remote(NodeActor).remote()
        environment = ray.get(node.start_mps.remote(), timeout=60)
        assert environment.keys() == {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"}
        assert not said.exists()
    finally:
        ray.shutdown()
    assert told(said) == f"quit -t 5 in {environment['CUDA_MPS_PIPE_DIRECTORY']}\n"


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        pytest.param("echo no device; exit 3", "-d ended with 3: no device", id="the daemon refuses"),
        pytest.param("exit 1", "-d ended with 1: it said nothing", id="the daemon is silent"),
    ],
)
def test_a_daemon_that_does_not_start_is_said(said: Path, start: str, sentence: str) -> None:
    stand_in(said.parent, start)
    with pytest.raises(mps.Unavailable, match=sentence):
        mps.Daemon()


def test_a_machine_without_mps_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mps.Unavailable, match="nvidia-cuda-mps-control is not there: mount it by NVIDIA_DRIVER_"):
        mps.Daemon()
