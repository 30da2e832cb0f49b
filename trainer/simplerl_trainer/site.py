"""The site of a run: its reserved nodes, and what each of them must have before a process starts there."""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Slot
from simplerl_api.run import Run
from simplerl_api.spec.hub import HubModel
from simplerl_trainer import answers, hub, mps, placement
from simplerl_trainer.actors import NodeActor
from simplerl_trainer.models import folder as model_folder
from simplerl_trainer.places import Places

PLACEMENT_SECONDS = 600.0
NODE_SECONDS = 300.0
DOWNLOAD_SECONDS = 7200.0
"""For a model's weights on their way from a hub to a node: 140 GB at 20 MB/s."""
INITIAL_MODEL = "initial-model"
"""Folder of the toy model in the run's folder: later attempts start from the very same weights."""


@dataclass(slots=True)
class Site:
    """The reserved nodes, with the model's folder on each."""

    run: Run
    places: Places
    nodes: dict[int, Any]
    """The NodeActor of each node that is there."""
    model_folders: dict[int, str]
    """The model's folder on each of them."""
    local_model: Path
    """The model's folder on the driver's node."""
    commit: str | None = None
    """The commit of a model from a hub."""
    local_judges: Mapping[int, Path] = field(default_factory=dict)
    """The folders of the reward models on the driver's node, by their place among the rewards."""
    judge_folders: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    """For each node, the folders of the reward models by their place among the rewards. Only ranks run them, and a node
    with ranks is never replaced."""
    environments: dict[int, Mapping[str, str]] = field(default_factory=dict)
    """For each node, what makes its processes clients of its CUDA MPS; nothing where there is none."""
    without_mps: str | None = None
    """Why engines that share a GPU take turns on it, where they do."""
    _furnishing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def share_gpus(self) -> None:
        """Starts CUDA MPS where engines share a GPU."""
        self.environments = await self._mps(self.nodes)

    def hold(self, nodes: Collection[int]) -> None:
        """Holds these of the nodes that come and go, and no others."""
        for node in self.places.hold(nodes):
            if (actor := self.nodes.pop(node, None)) is not None:
                ray.kill(actor)

    async def furnish(self, slot: Slot) -> None:
        """Brings to the slot's node, where it has come or been replaced, what it lacks: its NodeActor, the model's
        folder and CUDA MPS."""
        async with self._furnishing:
            node, name = slot.node, f"node {slot.node}"
            if node in self.nodes:
                found = await answers.outcomes(NODE_SECONDS, {name: self.nodes[node].address.remote()})
                if not answers.ended(found[name]):
                    return
            options = placement.options([slot], self.places, self.run.spec.cluster.cpu_only)
            actor = ray.remote(NodeActor).options(**node_options(options)).remote()
            # the first call waits until the node is there
            await ask("coming in the place of a lost node", {name: actor.address.remote()}, PLACEMENT_SECONDS)
            if self.run.spec.model.tiny is not None:
                files = ray.put(await asyncio.to_thread(model_folder.pack, self.local_model))
                (folder,) = await ask("writing the model's folder", {name: actor.unpack.remote(files)})
                self.model_folders[node] = folder
            elif self.commit is not None:
                self.model_folders |= await _download(
                    self.run, {node: actor}, self.run.spec.model.hub, self.commit, "model.hub"
                )
            elif self.run.spec.model.path is not None:
                self.model_folders[node] = self.run.spec.model.path
            self.environments |= await self._mps({node: actor})
            self.nodes[node] = actor

    async def _mps(self, nodes: Mapping[int, Any]) -> dict[int, Mapping[str, str]]:
        if not mps.wanted(self.run.plan, self.run.spec.cluster.cpu_only):
            return {n: {} for n in nodes}
        answered = await ask("starting CUDA MPS", {f"node {n}": a.start_mps.remote() for n, a in nodes.items()})
        self.without_mps = next((a for a in answered if isinstance(a, str)), self.without_mps)
        return {n: {} if isinstance(a, str) else a for n, a in zip(nodes, answered, strict=True)}


async def reserve(
    run: Run,
    one_machine: bool,
    commits: Mapping[str, str] = {},
    local_judges: Mapping[int, Path] = {},
    engines: int | None = None,
) -> Site:
    """Reserves the plan's nodes and brings the models' folders to them; `commits` are those of models from a hub, by
    their path in the spec; `engines`: how many are wanted, where they come and go.

    Raises TrainerFailure: PlacementTimeout, or InvalidInput where a model cannot be used.
    """
    site = await _reserve(run, one_machine, commits.get("model"), engines)
    folders: dict[int, dict[int, str]] = {n: {} for n in site.nodes}
    for i, reward in enumerate(run.spec.rewards):
        if reward.model is not None:
            found = dict.fromkeys(site.nodes, reward.model.path)
            if reward.model.hub is not None:
                field = f"rewards[{i}].model"
                found = await _download(run, site.nodes, reward.model.hub, commits[field], f"{field}.hub")
            for node, folder in found.items():
                folders[node][i] = folder
    site.local_judges, site.judge_folders = local_judges, folders
    return site


async def _reserve(run: Run, one_machine: bool, commit: str | None, engines: int | None) -> Site:
    plan, cpu_only = run.plan, run.spec.cluster.cpu_only
    places = await placement.reserve(plan, cpu_only, PLACEMENT_SECONDS, one_machine, engines)
    first_slots = {s.node: s for s in reversed(plan.slots())}
    actor = ray.remote(NodeActor)
    nodes = {
        n: actor.options(**node_options(placement.options([first_slots[n]], places, cpu_only))).remote()
        for n in places.there()
    }
    if run.spec.model.hub is not None:
        assert commit is not None, "a hub's revision is resolved before nodes are reserved"
        folders = await _download(run, nodes, run.spec.model.hub, commit, "model.hub")
        local = await asyncio.to_thread(hub.model_folder, run.spec.model.hub, commit, "model.hub", weights=False)
        return Site(run, places, nodes, folders, local, commit)
    if run.spec.model.path is not None:
        return Site(run, places, nodes, dict.fromkeys(nodes, run.spec.model.path), Path(run.spec.model.path))
    assert run.spec.model.tiny is not None
    kept = Path(run.output) / INITIAL_MODEL
    if kept.exists():
        files = await asyncio.to_thread(model_folder.pack, kept)
    else:
        (files,) = await ask("building the toy model", {"node 0": nodes[0].build_tiny.remote(run.spec.model.tiny)})
        await asyncio.to_thread(model_folder.unpack, files, kept)
    packed = ray.put(files)
    written = await ask("writing the model's folder", {f"node {n}": a.unpack.remote(packed) for n, a in nodes.items()})
    return Site(run, places, nodes, dict(zip(nodes, written, strict=True)), kept)


def node_options(options: dict[str, Any]) -> dict[str, Any]:
    """A node's own actor downloads: what the driver's environment says of the hub holds for it too."""
    variables = options["runtime_env"]["env_vars"] | hub.environment(os.environ)
    return {**options, "runtime_env": {"env_vars": variables}}


async def ask(doing: str, calls: Mapping[str, Any], seconds: float = NODE_SECONDS) -> list[Any]:
    """The answers of nodes, in order; raises TrainerFailure(InternalError) where one ends."""
    try:
        return await answers.within(seconds, doing, calls, FailureReason.INTERNAL)
    except ray.exceptions.RayError as e:
        raise TrainerFailure(FailureReason.INTERNAL, f"{next(iter(calls))} failed while {doing}: {e}") from e


async def _download(
    run: Run, nodes: Mapping[int, Any], model: HubModel | None, commit: str, field: str
) -> dict[int, str]:
    """A model's folder on each node. Where nodes share a cache the first one fills it for all."""
    calls = {f"node {n}": node for n, node in nodes.items()}
    waves = [dict([c]) for c in calls.items()] if run.spec.model.cache_claim_name else [calls]
    folders: list[str] = []
    for wave in waves:
        downloads = {name: node.download.remote(model, commit, field) for name, node in wave.items()}
        folders += await ask(f"downloading {field}", downloads, DOWNLOAD_SECONDS)
    return dict(zip(nodes, folders, strict=True))
