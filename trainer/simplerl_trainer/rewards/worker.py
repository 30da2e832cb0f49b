"""One reward process, as the driver sees it."""

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rewards.messages import HEADER, Ready, Setup, encode
from simplerl_trainer.rewards.surroundings import Surroundings

STARTUP_SECONDS = 120.0
"""For imports and the tokenizer, on a busy machine."""
LAST_WORDS_SECONDS = 1.0
"""For what an ended process printed: one that it has started may hold its standard error open for ever."""
CHUNK_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Worker:
    """A reward process that is ready."""

    process: Process
    printing: asyncio.Task[None]
    """Passes on what it prints."""
    concurrent: bool = False


async def check(setup: Setup, surroundings: Surroundings) -> None:
    """Starts one process and ends it again.

    Raises TrainerFailure(INVALID_INPUT) with a sentence where its reward cannot be used, TrainerFailure(INTERNAL) where
    the process does not start for another reason.
    """
    await kill(await start(setup, surroundings))


async def start(setup: Setup, surroundings: Surroundings) -> Worker:
    """A reward process that is ready; raises as `check`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "simplerl_trainer.rewards.process",
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=surroundings.environment(os.environ),
        start_new_session=True,  # Ctrl-C is the driver's to handle
    )
    assert process.stdin is not None
    worker = Worker(process, asyncio.create_task(_pass_on(process, surroundings)))
    try:
        process.stdin.write(encode(setup))
        ready: Ready = await asyncio.wait_for(receive(process), STARTUP_SECONDS)
    except TimeoutError as e:
        await kill(worker)
        raise _broken(setup, f"was not ready after {STARTUP_SECONDS:g} s") from e
    except (EOFError, ConnectionError) as e:
        code = await asyncio.wait_for(process.wait(), STARTUP_SECONDS)
        await kill(worker)
        raise _broken(setup, f"ended with exit code {code} at its start") from e
    except asyncio.CancelledError:
        await kill(worker)
        raise
    if ready.fault:
        await kill(worker)
        raise TrainerFailure(FailureReason.INVALID_INPUT, ready.fault)
    return replace(worker, concurrent=ready.concurrent)


async def receive(process: Process) -> Any:
    """The next message of a reward process; raises EOFError where it ends."""
    assert process.stdout is not None
    (length,) = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return pickle.loads(await process.stdout.readexactly(length))


async def _pass_on(process: Process, surroundings: Surroundings) -> None:
    """What the process prints, to our standard error, until it ends."""
    assert process.stderr is not None
    held = b""
    while read := await process.stderr.read(CHUNK_BYTES):
        lines, held = surroundings.redaction.lines(held + read)
        _print(lines)
    lines, _ = surroundings.redaction.lines(held + b"\n" if held else b"")
    _print(lines)


def _print(text: bytes) -> None:
    print(text.decode("utf-8", "replace"), end="", file=sys.stderr, flush=True)


async def kill(worker: Worker) -> None:
    """Ends a reward process and all that it started."""
    # the process leads a session of its own: what a reward function started goes with it
    with suppress(ProcessLookupError):
        os.killpg(worker.process.pid, signal.SIGKILL)
    # SIGKILL ends even a process that is lost in C; waiting reaps it
    await asyncio.wait_for(worker.process.wait(), STARTUP_SECONDS)
    await asyncio.wait([worker.printing], timeout=LAST_WORDS_SECONDS)
    worker.printing.cancel()


def _broken(setup: Setup, what: str) -> TrainerFailure:
    if setup.code:  # it is the import of the user's file that hung or ended the process
        return TrainerFailure(
            FailureReason.INVALID_INPUT, f"{setup.field}.python: the process that imports {setup.code} {what}: mend it"
        )
    return TrainerFailure(FailureReason.INTERNAL, f"a reward process {what}: its lines on standard error tell why")
