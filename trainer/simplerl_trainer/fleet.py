"""The processes of a run, joined by the roads that weights travel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.progress import Versions
from simplerl_api.run import Run
from simplerl_trainer.engines import Engines
from simplerl_trainer.ranks import Ranks
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.site import Site
from simplerl_trainer.weights import roads, sync
from simplerl_trainer.weights.buckets import Bucket

SYNC_SECONDS = 600.0
BUCKET_SECONDS = 120.0
"""Shorter than SYNC_SECONDS, so that the one who waits can say for what."""


@dataclass(slots=True)
class Fleet:
    """A run's processes, ready to draw and to train."""

    run: Run
    ranks: Ranks
    pool: Pool
    buckets: Sequence[Bucket]
    address: str
    """The address of rank 0's node."""
    versions: Versions
    without_mps: str | None
    """Why engines that share a GPU take turns on it, where they do."""
    engines: Engines
    site: Site
    laid: roads.Roads | None = None
    """The roads of the newest sync."""
    laid_at: int = -1
    """The pool's changes when they were laid."""

    async def sync(self, version: int) -> None:
        """Brings the ranks' weights into all engines as `version`.

        Engines that are not wanted any more go, and those that came back join. One that ends meanwhile is left out, and
        the sync made again; what is missing then is started beside the steps that follow. Raises what
        weights.sync.sync does, and TrainerFailure(LostEngines) where no engine is left or comes back.
        """
        served = set(self.pool.engines)
        await self._muster()
        self.engines.serves(served & set(self.pool.engines))
        while True:
            engines = self.pool.engines
            if self.laid is None or self.laid_at != self.pool.changes:
                self.laid, self.laid_at = await self._lay(set(engines)), self.pool.changes
            lost = await sync.sync(self.ranks.actors, engines, self.laid, self.buckets, version, SYNC_SECONDS)
            if not lost:
                break
            for engine, why in lost.items():
                self.pool.lose(engine, why)
            await self._muster()
        self.engines.begin(self.pool.engines)

    def idle(self) -> Sequence[str]:
        """The addresses of nodes that hold no engine any more."""
        return self.site.places.idle()

    async def _muster(self) -> None:
        """Brings the pool to the engines that live and are wanted; waits for one where there is none."""
        try:
            await self.pool.check()
        except TrainerFailure as failure:
            if failure.reason is not FailureReason.LOST_ENGINES or not self.engines.hopeful:
                raise
        self._take_in(self.engines.ready())
        if not self.pool.engines:
            self._take_in(await self.engines.wait(float(self.run.spec.recovery.stall_timeout_seconds)))
            self.pool.require(self.engines.why)
        wanted, homes = set(self.engines.wanted), self.run.plan.engine_slots()
        for engine in set(self.pool.engines) - wanted:
            ray.kill(self.pool.leave(engine))
        self.engines.abandon_all_but(wanted)
        self.site.hold({homes[engine][0].node for engine in wanted})

    def _take_in(self, started: Mapping[int, Any]) -> None:
        for engine, actor in started.items():
            self.pool.join(engine, actor)

    async def _lay(self, engines: set[int]) -> roads.Roads:
        """Roads to the engines that live; their group forms anew, on a port of its own."""
        return lay(self.run, self.address, await self.ranks.hold_port(), engines)


def lay(run: Run, address: str, port: int, engines: set[int] | None) -> roads.Roads:
    """The roads from the ranks to these engines, or to all of the plan."""
    return roads.roads(
        run.plan.slots(),
        run=run.submission_id,
        address=address,
        port=port,
        cpu_only=run.spec.cluster.cpu_only,
        timeout=BUCKET_SECONDS,
        engines=engines,
    )
