"""A run in Weights & Biases, in a process of its own: its client waits for servers without bound, and can be killed."""

import json
import secrets
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from simplerl_api.run import Run
from simplerl_api.spec.tracking import Wandb


class WandbRun:
    """Sends figures to a process (see wandb_process) that holds the run."""

    name = "wandb"

    def __init__(self, run: Run, settings: Wandb, known_id: str | None) -> None:
        """`known_id`: the run of an earlier attempt, which goes on."""
        self.id: str | None = known_id or secrets.token_hex(4)
        self._run = run
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None

    def open(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "simplerl_trainer.progress.wandb_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # its own lines; what matters comes back as a message
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the driver's to handle
        )
        self._send(self._setup())
        self._expect("ready")

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        self._send({"step": step, **figures})

    def close(self, failed: bool) -> None:
        self._send({"exit_code": 1 if failed else 0})
        self._expect("finished")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=30)

    def _setup(self) -> dict[str, Any]:
        run, settings = self._run, self._settings
        return {
            "id": self.id,
            "name": run.name,
            "project": settings.project,
            "entity": settings.entity,
            "mode": settings.mode.value.lower(),
            "folder": run.output,
            "config": {"spec": run.spec.document(), "plan": run.plan.document(), "namespace": run.namespace},
        }

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as e:
            raise RuntimeError(f"its process ended with exit code {self._process.wait()}") from e

    def _expect(self, state: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"its process ended with exit code {self._process.wait()}")
        answer = json.loads(line)
        if answer["state"] != state:
            raise RuntimeError(answer["why"])
