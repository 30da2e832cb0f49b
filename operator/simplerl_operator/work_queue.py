"""A queue of keys: each is in it at most once, is handled by one worker at a time, and comes back later where asked."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

K = TypeVar("K")


class WorkQueue(Generic[K]):
    """Handles keys with a few workers.

    `handle` returns the seconds until the key is to be handled again, or None. If it raises, the key comes back after a
    back-off that doubles with each failure in a row. Additions while a key is being handled make for one more turn.
    """

    def __init__(
        self,
        handle: Callable[[K], Awaitable[float | None]],
        *,
        workers: int,
        limit_seconds: float = 180.0,
        first_backoff: float = 0.5,
        longest_backoff: float = 60.0,
        expected: tuple[type[Exception], ...] = (),
        failed: Callable[[], None] = lambda: None,
        pause: Callable[[Exception], float] = lambda error: 0.0,
    ) -> None:
        """`pause`: the seconds that an error asks to wait at least."""
        self._handle = handle
        self._workers = workers
        self._limit_seconds = limit_seconds
        self._first_backoff, self._longest_backoff = first_backoff, longest_backoff
        self._expected = expected
        self._failed = failed
        self._pause = pause
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._queued: dict[K, float] = {}  # when each came, by the monotonic clock; in the order of coming
        self._running: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def depth(self) -> int:
        """Keys that wait for a worker."""
        return len(self._queued)

    @property
    def oldest(self) -> float:
        """Seconds for which the first of them has waited; 0 where none waits."""
        return time.monotonic() - next(iter(self._queued.values())) if self._queued else 0.0

    @property
    def alive(self) -> bool:
        """Whether all workers run."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._work(), name=f"worker {i}") for i in range(self._workers)]

    async def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add(self, key: K, delay: float = 0.0) -> None:
        """Has the key handled now, or after `delay` seconds unless it is sooner for another reason."""
        if delay > 0:
            self._add_later(key, delay)
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._running:
            self._again.add(key)
        elif key not in self._queued:
            self._queued[key] = time.monotonic()
            self._ready.put_nowait(key)

    def add_all(self, keys: Collection[K]) -> None:
        for key in keys:
            self.add(key)

    def _add_later(self, key: K, delay: float) -> None:
        if key in self._queued:
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + delay:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(delay, self._due, key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def _work(self) -> None:
        while True:
            key = await self._ready.get()
            self._queued.pop(key, None)
            self._running.add(key)
            try:
                delay = await self._turn(key)
            finally:
                self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                delay = 0.0
            if delay is not None:
                self.add(key, delay)

    async def _turn(self, key: K) -> float | None:
        try:
            async with asyncio.timeout(self._limit_seconds):
                delay = await self._handle(key)
        except Exception as error:  # noqa: BLE001 - one job's fault must not end the worker; it is logged and counted
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            backoff = float(min(self._first_backoff * 2 ** min(failures - 1, 30), self._longest_backoff))
            backoff = max(backoff, self._pause(error))
            self._failed()
            known = isinstance(error, self._expected)
            _log.error(
                "a job could not be handled",
                exc_info=None if known else error,
                extra={"key": str(key), "why": str(error) or type(error).__name__, "backoff": backoff},
            )
            return backoff
        self._failures.pop(key, None)
        return delay
