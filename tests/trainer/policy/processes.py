"""Programs of this folder in processes of their own, forked from one that holds the libraries already: importing torch,
transformers and deepspeed takes six seconds of a CPU."""

import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu"}
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "transformers.models.auto.modeling_auto", "deepspeed"])


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Running:
    """A program at work."""

    process: ForkServerProcess
    said: Path
    """The file of its standard output and error."""

    def wait(self, seconds: float) -> str:
        """What it has said at its end."""
        self.process.join(seconds)
        text = self.said.read_text(encoding="utf-8")
        assert self.process.exitcode is not None, f"it still runs after {seconds} s: {text[-4000:]}"
        return text

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.said.unlink(missing_ok=True)


def start(program: str, *arguments: object) -> Running:
    """A program of this folder, on one thread."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _ENVIRONMENT.items():
            patch.setenv(name, value)
        forkserver.ensure_running()
    file, said = tempfile.mkstemp(prefix=program)
    os.close(file)
    process = _CONTEXT.Process(target=_run, args=(FOLDER / program, [str(a) for a in arguments], said))
    process.start()
    return Running(process, Path(said))


def run(programs: Sequence[Running], seconds: float = 900) -> None:
    """Waits for all of them, each of which must end well."""
    try:
        for program in programs:
            text = program.wait(seconds)
            assert program.process.exitcode == 0, text[-4000:]
    finally:
        for program in programs:
            program.end()


def groups(program: str, folder: Path) -> list[Running]:
    """A program as one rank, and as two that are a group."""
    started = []
    for ranks in (1, 2):
        port = free_port()
        started += [start(program, rank, ranks, port, folder) for rank in range(ranks)]
    return started


def _run(program: Path, words: Sequence[str], said: str) -> None:
    file = os.open(said, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
    sys.argv = [str(program), *words]
    sys.path.insert(0, str(program.parent))  # as it is where Python starts a program
    runpy.run_path(str(program), run_name="__main__")
