"""The pool: all engines of a run as one, on the driver."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray.exceptions import RayTaskError

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import answers
from simplerl_trainer.rollout.ledger import Ledger
from simplerl_trainer.rollout.protocol import Finished, Request

HEADROOM = 1.25
"""Outstanding requests of an engine, as a multiple of what it draws at once: it never waits for the driver."""
POLL_SECONDS = 2.0
"""Longest that an engine holds back an empty answer."""
CALL_SECONDS = 120.0
"""Longest that sleeping, waking or aborting may take."""
CHECK_SECONDS = 60.0
"""Longest that an engine may take to say that it lives: it answers beside its work."""

Lost = Callable[[int, Any, str], None]
"""Hears of each engine that is lost: its number, its actor, and why."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that is under way."""

    engine: int
    polls: bool
    """Whether it asks for finished responses; else it hands over requests."""


class Pool:
    """Spreads requests over engines (Ray actors of simplerl_trainer.rollout.protocol.Engine, by number).

    An engine that ends, whatever it is asked at that moment, is taken out, and its unfinished work goes to the others
    at once. Every method that asks engines raises TrainerFailure(LostEngines) where none is left.
    """

    def __init__(
        self,
        engines: Mapping[int, Any],
        max_num_seqs: int,
        stall_seconds: float,
        on_lost: Lost = lambda engine, actor, why: None,
        *,
        deterministic: bool = False,
    ) -> None:
        """`deterministic`: every engine gets its whole share of the requests in one call, in order, so that what it
        computes does not depend on when others finish."""
        self._engines = dict(engines)
        self._limit = sys.maxsize if deterministic else max(1, round(max_num_seqs * HEADROOM))
        self._stall_seconds = stall_seconds
        self._on_lost = on_lost
        self._last = ""
        self._next_number = 0
        self._busy = False
        self.lost = 0
        """Engines that were lost so far."""
        self.changes = 0
        """Grows whenever an engine joins or goes: who keeps something for each engine then makes it anew."""

    @property
    def engines(self) -> Mapping[int, Any]:
        """The engines that live, by number."""
        return dict(self._engines)

    def join(self, engine: int, actor: Any) -> None:
        """Takes in an engine, which must have the weights of the others before the next request."""
        self._engines[engine] = actor
        self.changes += 1

    def leave(self, engine: int) -> Any:
        """Takes out an engine that is not needed; returns its actor. Not while requests are out."""
        if self._busy:
            raise RuntimeError(f"engine {engine} cannot leave during a rollout")
        self.changes += 1
        return self._engines.pop(engine)

    def lose(self, engine: int, why: str) -> None:
        """Takes out an engine that ended or does not answer."""
        if engine in self._engines:
            actor = self._engines.pop(engine)
            self._last = f": engine {engine} ended last ({why})"
            self.changes += 1
            self.lost += 1
            self._on_lost(engine, actor, why)

    def require(self, hope: str = "") -> None:
        """Raises TrainerFailure(LostEngines) where no engine is left; `hope`: what became of bringing one back."""
        if not self._engines:
            said = f"no rollout engine is left{self._last}" + (f"; {hope}" if hope else "")
            raise TrainerFailure(FailureReason.LOST_ENGINES, said)

    async def generate(self, requests: Sequence[Request]) -> AsyncGenerator[Finished]:
        """Every request's response exactly once, as they finish; close the iterator to abandon the rest.

        Raises TrainerFailure: LostEngines where none is left, TimedOut where an engine finishes nothing for the stall
        time, and what an engine raised, for example RolloutOutOfMemory.
        """
        if self._busy:
            raise RuntimeError("the pool serves one rollout at a time")
        self.require()
        self._busy = True
        ledger = Ledger(requests, self._engines, self._next_number)
        self._next_number = ledger.next_number
        calls: dict[asyncio.Task[Any], _Call] = {}
        heard = dict.fromkeys(self._engines, time.monotonic())
        try:
            while not ledger.done:
                self._call_engines(ledger, calls, heard)
                deadline = min(heard[e] for e in ledger.engines if ledger.out(e)) + self._stall_seconds
                done, _ = await asyncio.wait(
                    calls, timeout=max(0.0, deadline - time.monotonic()), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    for finished in self._take(task, calls.pop(task), ledger, heard):
                        yield finished
                self._check_stalled(ledger, heard)
        finally:
            await self._abandon(ledger, calls)
            self._busy = False

    async def check(self) -> None:
        """Finds the engines that ended while nobody asked them anything."""
        await self._all(CHECK_SECONDS, "version")

    async def sleep(self) -> None:
        """Engines give their GPU memory back."""
        await self._all(CALL_SECONDS, "sleep")

    async def wake(self, tags: Sequence[str]) -> None:
        """Engines take memory for `weights` or `kv_cache`."""
        await self._all(CALL_SECONDS, "wake", tags)

    def _call_engines(self, ledger: Ledger, calls: dict[asyncio.Task[Any], _Call], heard: dict[int, float]) -> None:
        for engine, requests in ledger.dispatch(self._limit).items():
            if len(ledger.out(engine)) == len(requests):
                heard[engine] = time.monotonic()  # it was idle: its time starts now
            calls[_task(self._engines[engine].submit.remote(requests))] = _Call(engine, polls=False)
        asked = {c.engine for c in calls.values() if c.polls}
        for engine in ledger.engines:
            if ledger.out(engine) and engine not in asked:
                calls[_task(self._engines[engine].finished.remote(POLL_SECONDS))] = _Call(engine, polls=True)

    def _take(
        self, task: asyncio.Task[Any], call: _Call, ledger: Ledger, heard: dict[int, float]
    ) -> Sequence[Finished]:
        error = task.exception()
        if error is None:
            new = ledger.finish(call.engine, task.result()) if call.polls else []
            if new:
                heard[call.engine] = time.monotonic()
            return new
        if not answers.ended(error):
            raise _cause(call.engine, error)
        ledger.lose(call.engine)
        self.lose(call.engine, answers.one_line(error))
        self.require()
        return []

    def _check_stalled(self, ledger: Ledger, heard: Mapping[int, float]) -> None:
        for engine in ledger.engines:
            out = len(ledger.out(engine))
            if out and time.monotonic() - heard[engine] >= self._stall_seconds:
                raise TrainerFailure(
                    FailureReason.TIMED_OUT,
                    f"engine {engine} finished none of its {out} requests within {self._stall_seconds:.0f} s",
                )

    async def _abandon(self, ledger: Ledger, calls: Mapping[asyncio.Task[Any], _Call]) -> None:
        """Makes the engines forget what nobody waits for, and sees their answers in, so that no late one is left.

        An engine that does not answer is found out by the next call to it.
        """
        bound = min(CALL_SECONDS, self._stall_seconds)
        await _settle([t for t, c in calls.items() if not c.polls], bound)  # an abort must not overtake its submit
        await _settle(
            [_task(self._engines[e].abort.remote(ledger.out(e))) for e in ledger.engines if ledger.out(e)], bound
        )
        await _settle([t for t, c in calls.items() if c.polls], bound)

    async def _all(self, seconds: float, method: str, *args: Any) -> None:
        """Asks all engines at once; takes out those that end or do not answer."""
        calls = {e: getattr(a, method).remote(*args) for e, a in self._engines.items()}
        found = await answers.outcomes(min(seconds, self._stall_seconds), {str(e): ref for e, ref in calls.items()})
        for engine, outcome in zip(calls, found.values(), strict=True):
            if answers.ended(outcome) or isinstance(outcome, answers.NoAnswer):
                self.lose(engine, f"{method}: {answers.one_line(outcome)}")
            elif isinstance(outcome, BaseException):
                raise _cause(engine, outcome)
        self.require()


def _task(ref: Any) -> asyncio.Task[Any]:
    async def answer() -> Any:
        return await ref

    return asyncio.ensure_future(answer())


async def _settle(tasks: Sequence[asyncio.Task[Any]], seconds: float) -> None:
    if tasks:
        done, pending = await asyncio.wait(tasks, timeout=seconds)
        for task in pending:
            task.cancel()
        for task in done:
            task.exception()  # another error has ended the rollout


def _cause(engine: int, error: BaseException) -> BaseException:
    """What an engine raised, as the driver should see it."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    return cause if isinstance(cause, TrainerFailure) else RuntimeError(f"engine {engine} failed: {error}")
