"""A pool of reward processes, each of which can be killed without harm to the others' work."""

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rewards.math import Judgement, Verdict
from simplerl_trainer.rewards.messages import HEADER, Case, Judged, Setup, encode

STARTUP_SECONDS = 120.0
"""For imports and the tokenizer, on a busy machine."""
LARGEST_BATCH = 256
"""Cases in one message: plain ones take microseconds each, so that the message is what costs."""


@dataclass(slots=True)
class _Call:
    """A caller that waits for all its cases."""

    judged: list[Judged | None]
    missing: int
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Item:
    case: Case
    call: _Call
    index: int

    def settle(self, judged: Judged) -> None:
        self.call.judged[self.index] = judged
        self.call.missing -= 1
        if self.call.missing == 0 and not self.call.done.done():
            self.call.done.set_result(None)


class Pool:
    """Up to `processes` reward processes, started when there is work.

    A case that takes longer than `timeout` seconds is answered as timed out, one whose process ends as failed; in both
    cases the process is replaced and its other cases are judged all the same. To be used in one event loop.
    """

    def __init__(self, setup: Setup, processes: int, timeout: float) -> None:
        self._setup = setup
        self._limit = processes
        self._timeout = timeout
        self._waiting: deque[_Item] = deque()
        self._work = asyncio.Event()
        self._idle = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Future[None]] = set()

    async def judge(self, cases: Sequence[Case]) -> list[Judged]:
        """All cases, judged, in their order.

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
        return [judged for judged in call.judged if judged is not None]

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
        process: Process | None = None
        try:
            while True:
                await self._some_work()
                if process is None:
                    process = await self._start()
                # others may have done it meanwhile
                if (items := self._take()) and not await self._judge(process, items):
                    await _kill(process)
                    process = None
        finally:
            if process is not None:
                await _kill(process)

    async def _some_work(self) -> None:
        while not self._waiting:
            self._work.clear()
            self._idle += 1
            try:
                await self._work.wait()
            finally:
                self._idle -= 1

    def _take(self) -> list[_Item]:
        """The next batch: large where much waits, small towards the end so that all processes end together."""
        count = min(LARGEST_BATCH, -(-len(self._waiting) // (2 * self._limit)))
        return [self._waiting.popleft() for _ in range(count)]

    async def _judge(self, process: Process, items: Sequence[_Item]) -> bool:
        """Has a batch judged. False where the process must be replaced: the case at fault is settled, those after it
        wait again."""
        assert process.stdin is not None
        settled = 0
        judgement: Judgement
        try:
            process.stdin.write(encode([item.case for item in items]))
            await asyncio.wait_for(process.stdin.drain(), self._timeout)
            while settled < len(items):
                for judged in await asyncio.wait_for(_receive(process), self._timeout):
                    items[settled].settle(judged)
                    settled += 1
            return True
        except TimeoutError:
            judgement = Judgement(Verdict.TIMEOUT, why=f"judging it took longer than {self._timeout:g} s")
        except (EOFError, ConnectionError):
            code = await asyncio.wait_for(process.wait(), STARTUP_SECONDS)
            judgement = Judgement(Verdict.FAILED, why=f"its reward process ended with exit code {code}")
        items[settled].settle(Judged((judgement,) * len(self._setup.rewards)))
        self._waiting.extendleft(reversed(items[settled + 1 :]))
        self._work.set()
        return False

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "simplerl_trainer.rewards.process",
            stdin=PIPE,
            stdout=PIPE,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is the driver's to handle
        )
        assert process.stdin is not None
        try:
            process.stdin.write(encode(self._setup))
            await asyncio.wait_for(_receive(process), STARTUP_SECONDS)
        except TimeoutError as e:
            await _kill(process)
            raise _broken(f"a reward process was not ready after {STARTUP_SECONDS:g} s") from e
        except (EOFError, ConnectionError) as e:
            code = await asyncio.wait_for(process.wait(), STARTUP_SECONDS)
            raise _broken(f"a reward process ended with exit code {code} at its start") from e
        except asyncio.CancelledError:
            await _kill(process)
            raise
        return process


async def _receive(process: Process) -> Sequence[Judged]:
    assert process.stdout is not None
    (length,) = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    part: Sequence[Judged] = pickle.loads(await process.stdout.readexactly(length))
    return part


async def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    # SIGKILL ends even a process that is lost in C; waiting reaps it
    await asyncio.wait_for(process.wait(), STARTUP_SECONDS)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
    }


def _broken(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INTERNAL, f"{message}: its lines on standard error tell why")
