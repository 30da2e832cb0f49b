"""A pool of reward processes, each of which can be killed without harm to the others' work."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.rewards import worker as worker_process
from simplerl_trainer.rewards.messages import Case, Setup, encode
from simplerl_trainer.rewards.outcome import Outcome, Verdict, failure
from simplerl_trainer.rewards.surroundings import PLAIN, Surroundings
from simplerl_trainer.rewards.worker import Worker

LARGEST_BATCH = 256
"""Cases in one message: plain ones take microseconds each, so that the message is what costs."""
LARGEST_CONCURRENT = 64
"""Cases that one process works on at once, where its reward is an async function."""
SUCCESSOR_TRIES = 3
FIRST_PAUSE_SECONDS = 1.0
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
        self._closed = False

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
        self._closed = True
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
        worker: Worker | None = None
        try:
            # asked too, since wait_for of Python 3.11 loses a cancellation that comes as what it waits for is done
            while not self._closed:
                await self._some_work()
                if worker is None:
                    worker = await self._started()
                # others may have done it meanwhile
                if (items := self._take(worker)) and not await self._score(worker, items):
                    await worker_process.kill(worker)
                    worker = None
        finally:
            if worker is not None:
                await worker_process.kill(worker)

    async def _started(self) -> Worker:
        tries = SUCCESSOR_TRIES if self._proved else 1
        for attempt in range(1, tries + 1):
            try:
                worker = await worker_process.start(self._setup, self._surroundings)
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

    def _take(self, worker: Worker) -> list[_Item]:
        """The next batch: large where much waits, small towards the end so that all processes end together."""
        most = LARGEST_CONCURRENT if worker.concurrent else LARGEST_BATCH
        count = min(most, -(-len(self._waiting) // (2 * self._limit)))
        if worker.concurrent and self._waiting and self._waiting[0].alone:
            count = 1
        return [self._waiting.popleft() for _ in range(count)]

    async def _score(self, worker: Worker, items: Sequence[_Item]) -> bool:
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
                for outcome in await asyncio.wait_for(worker_process.receive(process), seconds):
                    items[settled].settle(outcome)
                    settled += 1
            return True
        except TimeoutError:
            outcome = failure(reward, Verdict.TIMEOUT, f"scoring it took longer than {self._timeout:g} s")
        except (EOFError, ConnectionError):
            code = await asyncio.wait_for(process.wait(), worker_process.STARTUP_SECONDS)
            outcome = failure(reward, Verdict.FAILED, f"its reward process ended with exit code {code}")
        left = list(items[settled:])
        if worker.concurrent and len(left) > 1:
            left = [replace(item, alone=True) for item in left]
        else:
            left.pop(0).settle(outcome)
        self._waiting.extendleft(reversed(left))
        self._work.set()
        return False
