"""What ended a worker while it started, and the end of an engine with its worker.

A worker is a process of its own where an engine spans GPUs. vLLM's executor only says that one of them did not start
and logs the reason there; the worker therefore leaves it in a file, whose path it has from its environment.
"""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simplerl_trainer.rollout import shared_names

LOST_WORKER = 70
"""Exit code of an engine's process of which a worker ended."""
_FILE = "SIMPLERL_WORKER_FAULTS"
_LOGGER = "vllm.v1.executor.multiproc_executor"


class _Keeper(logging.Handler):
    """Leaves the logged exceptions in a file."""

    def __init__(self, path: str) -> None:
        super().__init__(logging.ERROR)
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(f"{type(error).__name__}: {error}\n")
            shared_names.forget()  # the worker ends, and nobody else does it


def keep() -> None:
    """In a worker's process: keeps what is logged from now on, where `named` asked for it."""
    if path := os.environ.get(_FILE):
        logging.getLogger(_LOGGER).addHandler(_Keeper(path))


@contextmanager
def named() -> Iterator[None]:
    """In the engine's process: an error that ends the block tells what a worker left. Raises RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="simplerl-engine-") as folder:
        said = Path(folder) / "faults.txt"
        os.environ[_FILE] = str(said)
        try:
            yield
        except Exception as error:
            if said.exists():
                raise RuntimeError(
                    f"a worker of the engine did not start: {said.read_text('utf-8').strip()}"
                ) from error
            raise
        finally:
            del os.environ[_FILE]


def end() -> None:
    """In the engine's process, when a worker has ended: whoever watches the engine has one process to watch."""
    print("a worker of this engine ended, and the engine with it", file=sys.stderr, flush=True)
    os._exit(LOST_WORKER)
