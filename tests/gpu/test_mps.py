"""NVIDIA's own MPS daemon; tests/trainer/test_mps.py has its life with a stand-in."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from simplerl_trainer import mps

CLIENT = "import torch; print(int(torch.ones(8, device='cuda').sum()))"


def left(folder: Path) -> list[str]:
    """Names of the MPS processes that use a folder."""
    found = []
    for process in psutil.process_iter(["name"]):
        if (process.info["name"] or "").startswith("nvidia-cuda-mps"):
            try:
                pipe = process.environ().get("CUDA_MPS_PIPE_DIRECTORY", "")
            except psutil.Error:  # it has ended
                continue
            if Path(pipe).parent == folder:
                found.append(process.info["name"])
    return found


def test_a_client_computes_under_the_daemon_and_nothing_is_left_after_stop() -> None:
    daemon = mps.Daemon()
    folder = Path(daemon.environment["CUDA_MPS_PIPE_DIRECTORY"]).parent
    environment = {**os.environ, **daemon.environment}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "8\n"
    assert any("server" in name for name in left(folder)), "the client has a server of this daemon"
    daemon.stop()
    bound = time.monotonic() + 20
    while left(folder) and time.monotonic() < bound:
        time.sleep(0.1)
    assert left(folder) == []
    assert not folder.exists()
