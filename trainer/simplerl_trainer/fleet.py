"""The processes of a run: started in their slots, and joined by the roads that weights travel."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from simplerl_api import __version__
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import PlacementKind, Plan
from simplerl_api.progress import Versions
from simplerl_api.run import Run
from simplerl_api.spec.training import Precision
from simplerl_trainer import answers, placement
from simplerl_trainer.actors import EngineActor, RankActor
from simplerl_trainer.engines import Engines
from simplerl_trainer.policy.protocol import RankSetup
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.ranks import Ranks
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup
from simplerl_trainer.setups import engine_setup, memory_needs, rank_setup
from simplerl_trainer.site import Site, ask
from simplerl_trainer.weights import roads, room, sync
from simplerl_trainer.weights.buckets import Bucket, make_buckets

START_SECONDS = 900.0
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
        for engine in set(self.pool.engines) - set(self.engines.wanted):
            ray.kill(self.pool.leave(engine))

    def _take_in(self, started: Mapping[int, Any]) -> None:
        for engine, actor in started.items():
            self.pool.join(engine, actor)

    async def _lay(self, engines: set[int]) -> roads.Roads:
        """Roads to the engines that live; their group forms anew, on a port of its own."""
        return _roads(self.run, self.address, await _port(self.ranks), engines)


async def start(
    run: Run, site: Site, stop_token_ids: Sequence[int], vocabulary: int, control: Control, log: Log
) -> Fleet:
    """Starts ranks and engines together and joins them; ids from `vocabulary` on are never drawn.

    Raises TrainerFailure naming the rank or engine that does not start.
    """
    plan, spec = run.plan, run.spec
    slots = plan.slots()
    await ask(
        "cleaning /dev/shm", {f"node {n}": a.clean.remote(roads.prefix(_job(run))) for n, a in enumerate(site.nodes)}
    )
    addresses = await ask("telling its address", {f"node {n}": a.address.remote() for n, a in enumerate(site.nodes)})
    await _check_shared_memory(run, site)
    rank_actor, engine_actor = ray.remote(RankActor), ray.remote(EngineActor)
    cpu_only = spec.cluster.cpu_only
    await site.share_gpus()
    ranks = Ranks(
        [
            rank_actor.options(**placement.options([s], site.group, cpu_only, site.environments[s.node])).remote()
            for s in slots
            if s.rank is not None
        ],
        spec.algorithm.chosen().epochs,
    )

    def new_engine(engine: int) -> Any:
        own = homes[engine]
        variables = site.environments[own[0].node]
        return engine_actor.options(**placement.engine_options(own, site.group, cpu_only, variables)).remote()

    def setup_of(engine: int) -> EngineSetup:
        return engine_setup(run, homes[engine][0], site, stop_token_ids, vocabulary)

    async def start_again(engine: int) -> Any:
        await site.furnish(homes[engine][0])
        actor = new_engine(engine)
        try:
            await _start_engines({engine: actor}, {engine: setup_of(engine)})
        except BaseException:
            ray.kill(actor)
            raise
        return actor

    def lost(engine: int, actor: Any, why: str) -> None:
        ray.kill(actor)  # one that is only silent must not come back
        log.warning("engine lost", engine=engine, why=why)

    homes = plan.engine_slots()
    engines = {e: new_engine(e) for e in homes}
    port = await _port(ranks)
    stall = float(spec.recovery.stall_timeout_seconds)
    needs = await asyncio.to_thread(memory_needs, run, site.local_model, site.local_judges)
    setups = [
        rank_setup(run, s, site, vocabulary, needs, addresses[slots[0].node], port, stall)
        for s in slots
        if s.rank is not None
    ]
    engine_setups = {e: setup_of(e) for e in homes}
    pool = Pool(engines, spec.rollout.max_num_seqs, stall, lost, deterministic=spec.training.deterministic)
    share = plan.placement is PlacementKind.COLOCATED and not cpu_only
    versions = await load_models(ranks, setups, pool, lambda: _start_engines(engines, engine_setups), share_gpus=share)
    parameters = (await ask("listing parameters", {"rank 0": ranks.actors[0].parameters.remote()}))[0]
    return Fleet(
        run=run,
        ranks=ranks,
        pool=pool,
        engines=Engines(
            start_again, spread(plan), control, log, replaces=plan.placement is PlacementKind.DISAGGREGATED
        ),
        buckets=make_buckets(parameters),
        address=addresses[slots[0].node],
        versions=Versions(
            trainer=__version__,
            vllm=versions["vllm"],
            deepspeed=versions["deepspeed"],
            ray=ray.__version__,
            torch=versions["torch"],
        ),
        without_mps=site.without_mps,
    )


async def load_models(
    ranks: Ranks,
    setups: Sequence[RankSetup],
    pool: Pool,
    start_engines: Callable[[], Awaitable[Sequence[Mapping[str, str]]]],
    *,
    share_gpus: bool,
) -> Mapping[str, str]:
    """Loads the models of ranks and engines, at once or, where they share GPUs, in turn; returns versions.

    Ranks that leave their GPUs to the engines do not fit beside engines that are awake. Engines stay asleep where ranks
    and engines take turns: the first sync wakes them.
    """
    if not share_gpus:
        of_ranks, of_engines = await asyncio.gather(ranks.start(setups), start_engines())
        return of_ranks | of_engines[0]
    of_engines = await start_engines()
    await pool.sleep()
    of_ranks = await ranks.start(setups)
    if not ranks.residence.sleeps:
        for memory in ("weights", "kv_cache"):
            await pool.wake([memory])
    return of_ranks | of_engines[0]


async def _port(ranks: Ranks) -> int:
    """A port at which others will meet rank 0."""
    call = {"rank 0": ranks.actors[0].hold_port.remote()}
    (port,) = await answers.within(START_SECONDS, "holding a port", call, FailureReason.LOST_RANK)
    return int(port)


async def _check_shared_memory(run: Run, site: Site) -> None:
    """Raises TrainerFailure(InvalidInput) where a node's /dev/shm does not hold what a sync leaves there."""
    dtype = "bfloat16" if run.plan.precision is Precision.BF16 else "float32"
    of_model = site.nodes[0].parameters.remote(site.model_folders[0], dtype)
    parameters = (await ask("reading the model's shapes", {"node 0": of_model}))[0]
    telling = {f"node {n}": a.shared_memory.remote() for n, a in enumerate(site.nodes)}
    free = await ask("telling its shared memory", telling)
    all_roads = _roads(run, address="", port=0, engines=None)
    needed = room.needed(all_roads, run.submission_id, run.plan.slots(), make_buckets(parameters))
    room.check(needed, dict(enumerate(free)))


def _roads(run: Run, address: str, port: int, engines: set[int] | None) -> roads.Roads:
    return roads.roads(
        run.plan.slots(),
        run=run.submission_id,
        address=address,
        port=port,
        cpu_only=run.spec.cluster.cpu_only,
        timeout=BUCKET_SECONDS,
        engines=engines,
    )


def spread(plan: Plan) -> Sequence[int]:
    """All engines, the first of each slot before the second of any: so many of them as are wanted use all slots."""
    places = {e: own[0].engines.index(e) for e, own in plan.engine_slots().items()}
    return sorted(places, key=lambda e: (places[e], e))


async def _start_engines(engines: Mapping[int, Any], setups: Mapping[int, EngineSetup]) -> list[dict[str, str]]:
    calls = {f"engine {e}": a.start.remote(setups[e]) for e, a in engines.items()}
    return await answers.within(START_SECONDS, "loading the model", calls, FailureReason.LOST_ENGINES)


def _job(run: Run) -> str:
    """What the submission ids of all attempts of this run begin with."""
    return run.submission_id.rsplit("-", 1)[0]
