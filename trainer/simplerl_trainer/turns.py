"""Whose turn it is: ranks train, engines roll out, and where not all of them fit on the GPUs the others leave."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.fleet import Fleet
from simplerl_trainer.progress.reporter import Reporter

T = TypeVar("T")


class Turns:
    """The turns of a fleet's ranks and engines."""

    def __init__(self, fleet: Fleet, reporter: Reporter, drain: asyncio.Event) -> None:
        self._fleet, self._reporter, self._drain = fleet, reporter, drain
        self.version = 0
        """That of the weights which the engines have."""
        self.rolling_out = False
        """Whether the engines have their GPUs, where ranks and engines take turns."""

    async def to_training(self) -> None:
        """The engines leave their GPUs to the ranks, where not all of them fit."""
        if self.rolling_out and self._fleet.ranks.residence.sleeps:
            await self._fleet.pool.sleep()
            await self._fleet.ranks.reload()
        self.rolling_out = False

    async def to_rollout(self, version: int) -> None:
        """The engines take over the ranks' weights as `version`, and their GPUs where they had left them."""
        if self._drain.is_set():
            return  # nothing more is drawn
        await self.to_training()
        sleeps = self._fleet.ranks.residence.sleeps
        if sleeps:
            await self._fleet.pool.wake(["weights"])
        await self._fleet.sync(version)
        self.version = version
        self._reporter.engines(len(self._fleet.pool.engines), self._fleet.engines.desired, self._fleet.idle())
        if sleeps:
            await self._fleet.ranks.offload()
            await self._fleet.pool.wake(["kv_cache"])
        self.rolling_out = True

    async def with_engines(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` draws; where it loses all engines it is done anew once one has come back with these weights."""
        while True:
            try:
                return await work()
            except TrainerFailure as failure:
                if failure.reason is not FailureReason.LOST_ENGINES or not self._fleet.engines.hopeful:
                    raise
            await self.to_rollout(self.version)
