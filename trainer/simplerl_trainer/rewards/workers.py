"""A pool of reward processes, each of which can be killed without harm to the others' work."""

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rewards.messages import HEADER, Case, Ready, Setup, encode
from simplerl_trainer.rewards.outcome import Outcome, Verdict, failure
from simplerl_trainer.rewards.surroundings import PLAIN, Surroundings

STARTUP_SECONDS = 120.0
"""For imports and the tokenizer, on a busy machine."""
LARGEST_BATCH = 256
"""Cases in one message: plain ones take microseconds each, so that the message is what costs."""
LARGEST_CONCURRENT = 64
"""Cases that one process works on at once, where its reward is an async function."""
CHUNK_BYTES = 65536
SUCCESSOR_TRIES = 3
FIRST_PAUSE_SECONDS = 1.0
LAST_WORDS_SECONDS = 1.0
"""For what an ended process printed: one that it has started may hold its standard error open for ever."""
CONCURRENT_SLACK_SECONDS = 5.0
"""How much longer than one case may take all cases at once may: the process itself ends those that wait too long."""


@dataclass(slots=True)
class _Call:
    """A caller that waits for all its cases."""

    outcomes: list[Outcome | None]
    missing: int
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Item:
    case: Case
    call: _Call
    index: int
    alone: bool = False
    """It was in a batch that ended its process, so that nobody knows which case did."""

    def settle(self, outcome: Outcome) -> None:
        self.call.outcomes[self.index] = outcome
        self.call.missing -= 1
        if self.call.missing == 0 and not self.call.done.done():
            self.call.done.set_result(None)


@dataclass(frozen=True, slots=True)
class _Worker:
    """A reward process that is ready."""

    process: Process
    printing: asyncio.Task[None]
    """Passes on what it prints."""
    concurrent: bool = False


class Pool:
    """Up to `processes` reward processes, started when there is work.

    A case that takes longer than `timeout` seconds is answered as timed out, one whose process ends as failed; in both
    cases the process is replaced and its other cases are scored all the same. To be used in one event loop.
    """

    def __init__(self, setup: Setup, processes: int, timeout: float, surroundings: Surroundings = PLAIN) -> None:
        self._setup, self._surroundings = setup, surroundings
        self._limit = processes
        self._timeout = timeout
        self._waiting: deque[_Item] = deque()
        self._work = asyncio.Event()
        self._idle = 0
        self._proved = False
        """Whether a process has been ready: then one that does not start may do so at another try."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Future[None]] = set()

    async def score(self, cases: Sequence[Case]) -> list[Outcome]:
        """The outcomes of all cases, in their order.

        Raises TrainerFailure(INTERNAL) where no reward process starts.
        """
        if not cases:
            return []
        call = _Call([None] * len(cases), len(cases), asyncio.get_running_loop().create_future())
        self._waiting.extend(_Item(case, call, i) for i, case in enumerate(cases))
        self._work.set()
        for _ in range(min(self._limit - len(self._tasks), len(cases) - self._idle)):
            task = asyncio.create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        self._calls.add(call.done)
        try:
            await call.done
        finally:
            self._calls.discard(call.done)
        return [outcome for outcome in call.outcomes if outcome is not None]

    async def close(self) -> None:
        """Kills all processes."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._waiting.clear()
            for done in self._calls:
                if not done.done():
                    done.set_exception(error)

    async def _serve(self) -> None:
        """The life of one process and its successors."""
        worker: _Worker | None = None
        try:
            while True:
                await self._some_work()
                if worker is None:
                    worker = await self._started()
                # others may have done it meanwhile
                if (items := self._take(worker)) and not await self._score(worker, items):
                    await _kill(worker)
                    worker = None
        finally:
            if worker is not None:
                await _kill(worker)

    async def _started(self) -> _Worker:
        tries = SUCCESSOR_TRIES if self._proved else 1
        for attempt in range(1, tries + 1):
            try:
                worker = await start(self._setup, self._surroundings)
            except TrainerFailure:
                if attempt == tries:
                    raise
                await asyncio.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            else:
                self._proved = True
                return worker
        raise AssertionError("the last try returns or raises")

    async def _some_work(self) -> None:
        while not self._waiting:
            self._work.clear()
            self._idle += 1
            try:
                await self._work.wait()
            finally:
                self._idle -= 1

    def _take(self, worker: _Worker) -> list[_Item]:
        """The next batch: large where much waits, small towards the end so that all processes end together."""
        most = LARGEST_CONCURRENT if worker.concurrent else LARGEST_BATCH
        count = min(most, -(-len(self._waiting) // (2 * self._limit)))
        if worker.concurrent and self._waiting and self._waiting[0].alone:
            count = 1
        return [self._waiting.popleft() for _ in range(count)]

    async def _score(self, worker: _Worker, items: Sequence[_Item]) -> bool:
        """Has a batch scored. False where the process must be replaced: the case at fault is settled, or, where that
        may be any of several, each will be tried alone; the others wait again."""
        process, reward = worker.process, self._setup.reward
        assert process.stdin is not None
        seconds = self._timeout + CONCURRENT_SLACK_SECONDS if worker.concurrent else self._timeout
        settled = 0
        try:
            process.stdin.write(encode([item.case for item in items]))
            await asyncio.wait_for(process.stdin.drain(), seconds)
            while settled < len(items):
                for outcome in await asyncio.wait_for(_receive(process), seconds):
                    items[settled].settle(outcome)
                    settled += 1
            return True
        except TimeoutError:
            outcome = failure(reward, Verdict.TIMEOUT, f"scoring it took longer than {self._timeout:g} s")
        except (EOFError, ConnectionError):
            code = await asyncio.wait_for(process.wait(), STARTUP_SECONDS)
            outcome = failure(reward, Verdict.FAILED, f"its reward process ended with exit code {code}")
        left = list(items[settled:])
        if worker.concurrent and len(left) > 1:
            left = [replace(item, alone=True) for item in left]
        else:
            left.pop(0).settle(outcome)
        self._waiting.extendleft(reversed(left))
        self._work.set()
        return False


async def check(setup: Setup, surroundings: Surroundings) -> None:
    """Starts one process and ends it again.

    Raises TrainerFailure(INVALID_INPUT) with a sentence where its reward cannot be used, TrainerFailure(INTERNAL) where
    the process does not start for another reason.
    """
    await _kill(await start(setup, surroundings))


async def start(setup: Setup, surroundings: Surroundings) -> _Worker:
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
    worker = _Worker(process, asyncio.create_task(_pass_on(process, surroundings)))
    try:
        process.stdin.write(encode(setup))
        ready: Ready = await asyncio.wait_for(_receive(process), STARTUP_SECONDS)
    except TimeoutError as e:
        await _kill(worker)
        raise _broken(setup, f"was not ready after {STARTUP_SECONDS:g} s") from e
    except (EOFError, ConnectionError) as e:
        code = await asyncio.wait_for(process.wait(), STARTUP_SECONDS)
        await _kill(worker)
        raise _broken(setup, f"ended with exit code {code} at its start") from e
    except asyncio.CancelledError:
        await _kill(worker)
        raise
    if ready.fault:
        await _kill(worker)
        raise TrainerFailure(FailureReason.INVALID_INPUT, ready.fault)
    return replace(worker, concurrent=ready.concurrent)


async def _receive(process: Process) -> Any:
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


async def _kill(worker: _Worker) -> None:
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
