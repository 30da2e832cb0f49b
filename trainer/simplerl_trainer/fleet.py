"""The processes of a run: reserved, started, and joined by the roads that weights travel."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray

from simplerl_api import __version__
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.memory import estimate
from simplerl_api.plan import Slot
from simplerl_api.progress import Versions
from simplerl_api.run import Run
from simplerl_api.spec.rollout import Overlap
from simplerl_api.spec.training import MICRO_BATCH_TOKENS, Precision
from simplerl_trainer import answers, hub, mps, placement
from simplerl_trainer.actors import EngineActor, NodeActor, RankActor
from simplerl_trainer.models import families, judges
from simplerl_trainer.models import folder as model_folder
from simplerl_trainer.policy.protocol import JudgeSetup, MemoryNeeds, RankSetup
from simplerl_trainer.ranks import Ranks
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup
from simplerl_trainer.weights import roads, room, sync
from simplerl_trainer.weights.buckets import Bucket, make_buckets

PLACEMENT_SECONDS = 600.0
START_SECONDS = 900.0
SYNC_SECONDS = 600.0
BUCKET_SECONDS = 120.0
"""Shorter than SYNC_SECONDS, so that the one who waits can say for what."""
NODE_SECONDS = 300.0
DOWNLOAD_SECONDS = 7200.0
"""For a model's weights on their way from a hub to a node: 140 GB at 20 MB/s."""
INITIAL_MODEL = "initial-model"
"""Folder of the toy model in the run's folder: later attempts start from the very same weights."""


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
    laid: roads.Roads | None = None
    """The roads of the newest sync."""

    async def sync(self, version: int) -> None:
        """Brings the ranks' weights into all engines as `version`."""
        engines = self.pool.engines
        if self.laid is None or set(self.laid.receivers) != set(engines):
            self.laid = await self._lay(set(engines))
        await sync.sync(self.ranks.actors, engines, self.laid, self.buckets, version, SYNC_SECONDS)

    async def _lay(self, engines: set[int]) -> roads.Roads:
        """Roads to the engines that live; their group forms anew, on a port of its own."""
        port = (await _all("holding a port", {"rank 0": self.ranks.actors[0].hold_port.remote()}))[0]
        return _roads(self.run, self.address, port, engines)


@dataclass(frozen=True, slots=True)
class Site:
    """The reserved nodes, with the model's folder on each."""

    group: Any
    nodes: Sequence[Any]
    """A NodeActor for each node of the plan."""
    model_folders: Sequence[str]
    """The model's folder on each node."""
    local_model: Path
    """The model's folder on the driver's node."""


async def reserve(run: Run, one_machine: bool, commit: str | None = None) -> Site:
    """Reserves the plan's nodes and brings the model's folder to them; `commit` is that of a model from a hub.

    Raises TrainerFailure: PlacementTimeout, or InvalidInput where the model cannot be used.
    """
    plan, cpu_only = run.plan, run.spec.cluster.cpu_only
    group = await placement.reserve(plan, cpu_only, PLACEMENT_SECONDS, one_machine)
    first_slots = {s.node: s for s in reversed(plan.slots())}
    actor = ray.remote(NodeActor)
    nodes = [
        actor.options(**node_options(placement.options([first_slots[n]], group, cpu_only))).remote()
        for n in range(plan.nodes)
    ]
    if run.spec.model.hub is not None:
        assert commit is not None, "a hub's revision is resolved before nodes are reserved"
        folders = await _download(run, nodes, commit)
        local = await asyncio.to_thread(hub.model_folder, run.spec.model.hub, commit, "model.hub", weights=False)
        return Site(group, nodes, folders, local)
    if run.spec.model.path is not None:
        return Site(group, nodes, [run.spec.model.path] * plan.nodes, Path(run.spec.model.path))
    assert run.spec.model.tiny is not None
    kept = Path(run.output) / INITIAL_MODEL
    if kept.exists():
        files = await asyncio.to_thread(model_folder.pack, kept)
    else:
        built = await _all("building the toy model", {"node 0": nodes[0].build_tiny.remote(run.spec.model.tiny)})
        files = built[0]
        await asyncio.to_thread(model_folder.unpack, files, kept)
    packed = ray.put(files)
    folders = await _all(
        "writing the model's folder", {f"node {n}": a.unpack.remote(packed) for n, a in enumerate(nodes)}
    )
    return Site(group, nodes, folders, kept)


def node_options(options: dict[str, Any]) -> dict[str, Any]:
    """A node's own actor downloads: what the driver's environment says of the hub holds for it too."""
    variables = options["runtime_env"]["env_vars"] | hub.environment(os.environ)
    return {**options, "runtime_env": {"env_vars": variables}}


async def _download(run: Run, nodes: Sequence[Any], commit: str) -> list[str]:
    """The model's folder on each node. Where nodes share a cache the first one fills it for all."""
    calls = {f"node {n}": node for n, node in enumerate(nodes)}
    waves = [dict([c]) for c in calls.items()] if run.spec.model.cache_claim_name else [calls]
    folders: list[str] = []
    for wave in waves:
        downloads = {name: node.download.remote(run.spec.model.hub, commit) for name, node in wave.items()}
        folders += await _all("downloading the model", downloads, DOWNLOAD_SECONDS)
    return folders


async def start(run: Run, site: Site, stop_token_ids: Sequence[int], vocabulary: int) -> Fleet:
    """Starts ranks and engines together and joins them; ids from `vocabulary` on are never drawn.

    Raises TrainerFailure naming the rank or engine that does not start.
    """
    plan, spec = run.plan, run.spec
    slots = plan.slots()
    await _all(
        "cleaning /dev/shm", {f"node {n}": a.clean.remote(roads.prefix(_job(run))) for n, a in enumerate(site.nodes)}
    )
    addresses = await _all("telling its address", {f"node {n}": a.address.remote() for n, a in enumerate(site.nodes)})
    await _check_shared_memory(run, site)
    rank_actor, engine_actor = ray.remote(RankActor), ray.remote(EngineActor)
    cpu_only = spec.cluster.cpu_only
    shared, without_mps = await _mps(run, site)
    ranks = Ranks(
        [
            rank_actor.options(**placement.options([s], site.group, cpu_only, shared[s.node])).remote()
            for s in slots
            if s.rank is not None
        ],
        spec.algorithm.chosen().epochs,
    )
    engines = {
        e: engine_actor.options(**placement.engine_options(own, site.group, cpu_only, shared[own[0].node])).remote()
        for e, own in plan.engine_slots().items()
    }
    port = (await _all("holding a port", {"rank 0": ranks.actors[0].hold_port.remote()}))[0]
    stall = float(spec.recovery.stall_timeout_seconds)
    needs = await asyncio.to_thread(_memory, run, site.local_model)
    setups = [
        _rank_setup(run, s, site, vocabulary, needs, addresses[slots[0].node], port, stall)
        for s in slots
        if s.rank is not None
    ]
    engine_setups = {
        e: _engine_setup(run, own[0], site, stop_token_ids, vocabulary) for e, own in plan.engine_slots().items()
    }
    started: tuple[dict[str, str], list[dict[str, str]]] = await asyncio.gather(
        ranks.start(setups), _start_engines(engines, engine_setups)
    )
    versions = started[0] | started[1][0]
    parameters = (await _all("listing parameters", {"rank 0": ranks.actors[0].parameters.remote()}))[0]
    return Fleet(
        run=run,
        ranks=ranks,
        pool=Pool(engines, spec.rollout.max_num_seqs, stall, deterministic=spec.training.deterministic),
        buckets=make_buckets(parameters),
        address=addresses[slots[0].node],
        versions=Versions(
            trainer=__version__,
            vllm=versions["vllm"],
            deepspeed=versions["deepspeed"],
            ray=ray.__version__,
            torch=versions["torch"],
        ),
        without_mps=without_mps,
    )


async def _mps(run: Run, site: Site) -> tuple[Sequence[Mapping[str, str]], str | None]:
    """By node, what makes its processes clients of its CUDA MPS; and why there is none where it is wanted."""
    if not mps.wanted(run.plan, run.spec.cluster.cpu_only):
        return [{}] * run.plan.nodes, None
    answered = await _all("starting CUDA MPS", {f"node {n}": a.start_mps.remote() for n, a in enumerate(site.nodes)})
    missing = [a for a in answered if isinstance(a, str)]
    return [{} if isinstance(a, str) else a for a in answered], missing[0] if missing else None


async def _check_shared_memory(run: Run, site: Site) -> None:
    """Raises TrainerFailure(InvalidInput) where a node's /dev/shm does not hold what a sync leaves there."""
    dtype = "bfloat16" if run.plan.precision is Precision.BF16 else "float32"
    of_model = site.nodes[0].parameters.remote(site.model_folders[0], dtype)
    parameters = (await _all("reading the model's shapes", {"node 0": of_model}))[0]
    telling = {f"node {n}": a.shared_memory.remote() for n, a in enumerate(site.nodes)}
    free = await _all("telling its shared memory", telling)
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


async def _start_engines(engines: Mapping[int, Any], setups: Mapping[int, EngineSetup]) -> list[dict[str, str]]:
    calls = {f"engine {e}": a.start.remote(setups[e]) for e, a in engines.items()}
    return await answers.within(START_SECONDS, "loading the model", calls, FailureReason.LOST_ENGINES)


def _rank_setup(
    run: Run, slot: Slot, site: Site, vocabulary: int, needs: MemoryNeeds, address: str, port: int, timeout: float
) -> RankSetup:
    assert slot.rank is not None
    return RankSetup(
        rank=slot.rank,
        world_size=run.plan.ranks,
        master_address=address,
        master_port=port,
        model_folder=site.model_folders[slot.node],
        algorithm=run.spec.algorithm,
        training=run.spec.training,
        zero_stage=run.plan.zero_stage,
        precision=run.plan.precision,
        temperature=run.spec.rollout.sampling.temperature,
        optimizer_steps_per_step=run.plan.optimizer_steps_per_step,
        max_tokens=run.spec.data.max_prompt_tokens + run.spec.rollout.sampling.max_new_tokens,
        max_new_tokens=run.spec.rollout.sampling.max_new_tokens,
        cpu_only=run.spec.cluster.cpu_only,
        timeout=timeout,
        decoupled=run.spec.rollout.overlap is Overlap.ONE_STEP,
        vocabulary=vocabulary,
        judges=tuple(
            JudgeSetup(r.name, r.model.path, f"rewards[{i}].model.path", r.weight, r.model.failed)
            for i, r in enumerate(run.spec.rewards)
            if r.model
        ),
        judge_tokens=run.plan.max_tokens_per_micro_batch or MICRO_BATCH_TOKENS,
        memory=needs if slot.engines else replace(needs, engines_share=0.0),
    )


def _memory(run: Run, folder: Path) -> MemoryNeeds:
    """What the estimate says of a GPU with a rank and engines."""
    shape = families.shape(folder)
    models = [
        judges.read(Path(r.model.path), f"rewards[{i}].model.path").shape
        for i, r in enumerate(run.spec.rewards)
        if r.model
    ]
    plain, checkpointed = (estimate(shape, run.spec, run.plan, models, gradient_checkpointing=c) for c in (False, True))
    return MemoryNeeds(plain, checkpointed, run.spec.rollout.gpu_memory_utilization)


def _engine_setup(run: Run, slot: Slot, site: Site, stop_token_ids: Sequence[int], vocabulary: int) -> EngineSetup:
    spec = run.spec
    longest = spec.rollout.sampling.max_new_tokens
    if spec.evaluation and spec.evaluation.max_new_tokens:
        longest = max(longest, spec.evaluation.max_new_tokens)
    return EngineSetup(
        model_folder=site.model_folders[slot.node],
        bf16=run.plan.precision is Precision.BF16,
        cpu_only=spec.cluster.cpu_only,
        max_model_len=spec.data.max_prompt_tokens + longest,
        max_num_seqs=spec.rollout.max_num_seqs,
        max_num_batched_tokens=spec.rollout.max_num_batched_tokens,
        gpu_memory_share=spec.rollout.gpu_memory_utilization / len(slot.engines),
        stop_token_ids=tuple(stop_token_ids),
        seed=spec.training.seed,
        deterministic=spec.training.deterministic,
        vocabulary=vocabulary,
        tensor_parallel_size=run.plan.tensor_parallel_size,
        verify_weights=spec.rollout.verify_weights,
    )


def _job(run: Run) -> str:
    """What the submission ids of all attempts of this run begin with."""
    return run.submission_id.rsplit("-", 1)[0]


async def _all(doing: str, calls: Mapping[str, Any], seconds: float = NODE_SECONDS) -> list[Any]:
    try:
        return await answers.within(seconds, doing, calls, FailureReason.INTERNAL)
    except ray.exceptions.RayError as e:
        raise TrainerFailure(FailureReason.INTERNAL, f"{next(iter(calls))} failed while {doing}: {e}") from e
