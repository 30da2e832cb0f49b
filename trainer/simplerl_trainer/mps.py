"""CUDA MPS (https://docs.nvidia.com/deploy/mps): processes that share a GPU run on it side by side, not by turns.

One daemon a pod, with folders of its own, so that it meets no other's. It makes the rollouts of several engines on one
GPU faster; without it everything works.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from simplerl_api.plan import Plan

CONTROL = "nvidia-cuda-mps-control"
_START_SECONDS, _STOP_SECONDS = 30, 20
# When its input closes, because of stop() or because the process that holds it has ended in any way, a shell ends the
# daemon and removes its folders; without `-t` it would wait for clients that are stuck. It runs in the background of
# another, which ends at once: Ray kills the children of an actor with it, but not those that are no longer its own.
_WATCH = f"exec 3<&0; (cat <&3 >/dev/null; echo 'quit -t 5' | {CONTROL}; rm -rf \"$1\") &"


class Unavailable(RuntimeError):
    """MPS cannot be used here; says why in one sentence."""


def wanted(plan: Plan, cpu_only: bool) -> bool:
    """Whether several engines share a GPU."""
    return not cpu_only and any(len(s.engines) > 1 for s in plan.slots())


class Daemon:
    """A daemon of this node, which ends with `stop`, or with this process."""

    def __init__(self) -> None:
        """Raises Unavailable."""
        if shutil.which(CONTROL) is None:
            raise Unavailable(f"{CONTROL} is not there: mount it by NVIDIA_DRIVER_CAPABILITIES=compute,utility")
        self._folder = Path(tempfile.mkdtemp(prefix="simplerl-mps-", dir="/tmp"))  # a socket's path must be short
        self.environment: Mapping[str, str] = {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._folder / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(self._folder / "log"),
        }
        """What makes a process its client; to be set before it uses CUDA."""
        for folder in self.environment.values():
            Path(folder).mkdir()
        try:
            self._start()
        except Unavailable:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        watch = subprocess.Popen(
            ["sh", "-c", _WATCH, "sh", str(self._folder)],
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert watch.stdin is not None
        self._life = watch.stdin
        watch.wait(timeout=_START_SECONDS)

    def stop(self) -> None:
        """Ends the daemon and removes its folders; those who still use the GPU through it lose it.

        Raises RuntimeError where it does not end in time.
        """
        self._life.close()
        bound = time.monotonic() + _STOP_SECONDS
        while self._folder.exists():
            if time.monotonic() > bound:
                raise RuntimeError(f"{CONTROL} of {self._folder} did not end within {_STOP_SECONDS} s")
            time.sleep(0.02)

    def _start(self) -> None:
        said = self._folder / "start.txt"
        try:
            with said.open("wb") as output:
                code = subprocess.run(
                    [CONTROL, "-d"],
                    env={**os.environ, **self.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,  # a pipe would stay open as long as the daemon lives
                    stderr=subprocess.STDOUT,
                    timeout=_START_SECONDS,
                    check=False,
                ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{CONTROL} -d did not start: {error}") from error
        if code != 0:
            text = said.read_text(encoding="utf-8", errors="replace").strip()
            raise Unavailable(f"{CONTROL} -d ended with {code}: {text or 'it said nothing'}")
