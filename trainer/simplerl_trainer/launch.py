"""The launch of a run: ranks and engines start in their slots and load their models."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import ray

from simplerl_api import __version__, names
from simplerl_api.failures import FailureReason
from simplerl_api.plan import PlacementKind
from simplerl_api.progress import Versions
from simplerl_api.run import Run
from simplerl_api.spec.training import Precision
from simplerl_trainer import answers, placement
from simplerl_trainer.actors import EngineActor, RankActor
from simplerl_trainer.engines import Engines, in_order
from simplerl_trainer.fleet import Fleet, lay
from simplerl_trainer.policy.protocol import RankSetup
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.ranks import Ranks
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup
from simplerl_trainer.setups import engine_setup, idle_advice, memory_needs, rank_setup
from simplerl_trainer.site import Site, ask
from simplerl_trainer.weights import roads, room
from simplerl_trainer.weights.buckets import make_buckets

START_SECONDS = 900.0


async def launch(
    run: Run, site: Site, stop_token_ids: Sequence[int], vocabulary: int, control: Control, log: Log
) -> Fleet:
    """Starts ranks and engines together and joins them; ids from `vocabulary` on are never drawn.

    Raises TrainerFailure naming the rank or engine that does not start.
    """
    plan, cpu_only = run.plan, run.spec.cluster.cpu_only
    shared_names = roads.prefix(_job(run))
    await ask("cleaning /dev/shm", {f"node {n}": a.clean.remote(shared_names) for n, a in site.nodes.items()})
    (first,) = await ask("telling its address", {"node 0": site.nodes[plan.slots()[0].node].address.remote()})
    await _check_shared_memory(run, site)
    await site.share_gpus()
    stall = float(run.spec.recovery.stall_timeout_seconds)

    ranks = _place_ranks(run, site)
    starts = EngineStarts(run, site, stop_token_ids, vocabulary, log)
    engines = {e: starts.place(e) for e, own in plan.engine_slots().items() if own[0].node in site.nodes}
    pool = Pool(
        engines, run.spec.rollout.max_num_seqs, stall, starts.lost, deterministic=run.spec.training.deterministic
    )
    needs = await asyncio.to_thread(memory_needs, run, site.local_model, site.local_judges)
    port = await ranks.hold_port()
    setups = [
        rank_setup(run, s, site, vocabulary, needs, first, port, stall) for s in plan.slots() if s.rank is not None
    ]
    versions = await load_models(
        ranks,
        setups,
        pool,
        lambda: starts.load(engines),
        share_gpus=plan.placement is PlacementKind.COLOCATED and not cpu_only,
    )
    log.info("models are loaded", **ranks.residence.model_dump())
    if (advice := idle_advice(run, site.local_model)) is not None:
        log.warning("the GPUs could draw faster", why=advice)
    parameters = (await ask("listing parameters", {"rank 0": ranks.actors[0].parameters.remote()}))[0]
    replaces = plan.placement is PlacementKind.DISAGGREGATED
    with_nodes = None if plan.min_engines is None else starts.with_nodes
    return Fleet(
        run=run,
        ranks=ranks,
        pool=pool,
        engines=Engines(starts.again, in_order(plan), control, log, replaces=replaces, with_nodes=with_nodes),
        site=site,
        buckets=make_buckets(parameters),
        address=first,
        versions=Versions(
            trainer=__version__,
            vllm=versions["vllm"],
            deepspeed=versions["deepspeed"],
            ray=ray.__version__,
            torch=versions["torch"],
        ),
        without_mps=site.without_mps,
    )


class EngineStarts:
    """Starts engines in their slots, at first and in the place of those that were lost."""

    def __init__(self, run: Run, site: Site, stop_token_ids: Sequence[int], vocabulary: int, log: Log) -> None:
        self._run, self._site, self._log = run, site, log
        self._stop_token_ids, self._vocabulary = stop_token_ids, vocabulary
        self._homes = run.plan.engine_slots()

    def place(self, engine: int) -> Any:
        """An actor for an engine in its slots, without a model."""
        own = self._homes[engine]
        variables = self._site.environments[own[0].node]
        options = placement.engine_options(own, self._site.places, self._run.spec.cluster.cpu_only, variables)
        return ray.remote(EngineActor).options(**options).remote()

    def with_nodes(self) -> Collection[int]:
        """The engines whose nodes are there."""
        there = self._site.places.there()
        return {engine for engine, own in self._homes.items() if own[0].node in there}

    async def load(self, actors: Mapping[int, Any]) -> list[dict[str, str]]:
        """Has engines load their models; returns their versions."""
        calls = {f"engine {e}": a.start.remote(self._setup(e)) for e, a in actors.items()}
        return await answers.within(START_SECONDS, "loading the model", calls, FailureReason.LOST_ENGINES)

    async def again(self, engine: int) -> Any:
        """A new actor, its model loaded, in the place of an engine that was lost."""
        await self._site.furnish(self._homes[engine][0])
        actor = self.place(engine)
        try:
            await self.load({engine: actor})
        except BaseException:
            ray.kill(actor)
            raise
        return actor

    def lost(self, engine: int, actor: Any, why: str) -> None:
        """Ends an engine that counts as lost."""
        ray.kill(actor)  # one that is only silent must not come back
        self._log.warning("engine lost", engine=engine, why=why)

    def _setup(self, engine: int) -> EngineSetup:
        # made anew each time: a node that was replaced has the model elsewhere
        return engine_setup(self._run, self._homes[engine][0], self._site, self._stop_token_ids, self._vocabulary)


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


def _place_ranks(run: Run, site: Site) -> Ranks:
    """The ranks' actors in their slots, without models."""
    actor = ray.remote(RankActor)
    slots = [s for s in run.plan.slots() if s.rank is not None]
    options = [placement.options([s], site.places, run.spec.cluster.cpu_only, site.environments[s.node]) for s in slots]
    return Ranks([actor.options(**o).remote() for o in options], run.spec.algorithm.chosen().epochs)


async def _check_shared_memory(run: Run, site: Site) -> None:
    """Raises TrainerFailure(InvalidInput) where a node's /dev/shm does not hold what a sync leaves there."""
    dtype = "bfloat16" if run.plan.precision is Precision.BF16 else "float32"
    of_model = site.nodes[0].parameters.remote(site.model_folders[0], dtype)
    parameters = (await ask("reading the model's shapes", {"node 0": of_model}))[0]
    telling = {f"node {n}": a.shared_memory.remote() for n, a in site.nodes.items()}
    free = dict(zip(site.nodes, await ask("telling its shared memory", telling), strict=True))
    all_roads = lay(run, address="", port=0, engines=None)
    needed = room.needed(all_roads, run.submission_id, run.plan.slots(), make_buckets(parameters))
    room.check({node: need for node, need in needed.items() if node in free}, free)


def _job(run: Run) -> str:
    """What the submission ids of all attempts of this run begin with."""
    return f"{run.name}-{names.short(run.uid)}"
