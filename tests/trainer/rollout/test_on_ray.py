"""Engines in processes of their own: both roads of the weights, two engines in one slot, and some that are killed."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
from ray.exceptions import RayActorError
from transformers import Qwen2ForCausalLM

from simplerl_api import overrides, validation, yaml12
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Slot, make_plan
from simplerl_api.progress import Versions
from simplerl_api.run import Run
from simplerl_trainer import fleet
from simplerl_trainer.actors import EngineActor
from simplerl_trainer.engines import Engines
from simplerl_trainer.fleet import Fleet
from simplerl_trainer.placement import environment
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.ranks import Ranks
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.weights.buckets import Parameter, make_buckets
from simplerl_trainer.weights.roads import prefix, roads
from simplerl_trainer.weights.sync import sync

RUN = "test-on-ray"
TINY = Path(__file__).parents[3] / "examples/tiny.yaml"
SETUP: EngineSetup  # of the fixture's model
REQUESTS = [Request(n, (5, 6, 7), n, 1.0, 10, False) for n in range(20)]
SLOTS = [
    Slot(index=0, node=0, gpu=0, rank=0, engines=(0,)),
    Slot(index=1, node=0, gpu=1, rank=None, engines=(1, 2)),
]


class Sending:
    """The part of a rank that sends its weights."""

    def __init__(self, folder: str, pause: float = 0.0) -> None:
        self._model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self._pause = pause  # seconds before each bucket

    def hold_port(self) -> int:
        from simplerl_trainer import ports

        return ports.hold()

    def send(self, sender: Any, buckets: Any) -> None:
        from simplerl_trainer.weights.send import send

        send(sender, (self._flat(b) for b in buckets))

    def _flat(self, bucket: Any) -> torch.Tensor:
        time.sleep(self._pause)
        parameters = dict(self._model.named_parameters())
        return torch.cat([parameters[p.name].detach().flatten() for p in bucket.parameters])


def new_engine(slot: Slot) -> Any:
    variables = environment([slot], cpu_only=True)
    options = {"num_cpus": 0, "max_concurrency": 8, "runtime_env": {"env_vars": variables}}
    return ray.remote(EngineActor).options(**options).remote()


def new_rank(folder: Path, pause: float = 0.0) -> Any:
    rank = ray.remote(Sending).options(num_cpus=0).remote(str(folder), pause)
    ray.get(rank.hold_port.remote(), timeout=240)  # its model is loaded then
    return rank


def kill(actor: Any) -> None:
    """As the kernel does where memory is short."""
    os.kill(ray.get(actor.__ray_call__.remote(lambda _: os.getpid()), timeout=120), signal.SIGKILL)


def lives(actor: Any) -> bool:
    try:
        ray.get(actor.version.remote(), timeout=120)
    except RayActorError:
        return False
    return True


@pytest.fixture(scope="module")
def engines(qwen2: Callable[..., Path]) -> Iterator[dict[int, Any]]:
    global SETUP
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False)
    SETUP = EngineSetup(str(qwen2(True)), False, True, 64, 16, 512, 1.0, (1,), 0, verify_weights=True)
    actors = {e: new_engine(slot) for slot in SLOTS for e in slot.engines}
    ray.get([a.start.remote(SETUP) for a in actors.values()], timeout=600)
    yield actors
    ray.shutdown()


def test_one_sync_reaches_every_engine_by_its_road(
    engines: Mapping[int, Any], qwen2: Callable[..., Path], free_port: int
) -> None:
    folder = qwen2(True, 5)
    rank = new_rank(folder)
    model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    parameters = [Parameter(n, "float32", tuple(p.shape)) for n, p in model.named_parameters()]
    buckets = make_buckets(parameters, 40_000)
    the_roads = roads(SLOTS, run=RUN, address="127.0.0.1", port=free_port, cpu_only=True, timeout=120.0)
    for version in (1, 2):
        asyncio.run(sync([rank], engines, the_roads, buckets, version, 240.0))
        assert ray.get([a.version.remote() for a in engines.values()], timeout=10) == [version] * 3
    for actor in engines.values():
        assert greatest_difference(actor, model) < 1e-4
    assert not list(Path("/dev/shm").glob(Path(prefix(RUN)).name + "*"))


def greatest_difference(actor: Any, model: Qwen2ForCausalLM) -> float:
    return asyncio.run(difference(actor, model))


async def difference(actor: Any, model: Qwen2ForCausalLM) -> float:
    """The greatest between the engine's log-probabilities of what it draws and the model's."""
    prompts = [tuple(range(3, 13 + n)) for n in range(6)]
    requests = [Request(n, p, n, 1.0, 12, True) for n, p in enumerate(prompts)]
    greatest = 0.0
    for f in await collect(Pool({0: actor}, 16, 120.0), requests):
        ids, start = torch.tensor([*prompts[f.id], *f.token_ids]), len(prompts[f.id])
        with torch.no_grad():
            logprobs = model(ids[None]).logits[0, start - 1 : -1].log_softmax(-1).gather(-1, ids[start:, None])[:, 0]
        greatest = max(greatest, (logprobs - torch.tensor(f.logprobs)).abs().max().item())
    return greatest


async def collect(pool: Pool, requests: list[Request]) -> list[Finished]:
    return [f async for f in pool.generate(requests)]


def test_the_work_of_a_killed_engine_is_done_by_the_others_with_the_same_samples(engines: Mapping[int, Any]) -> None:
    requests = [Request(n, (5, 6, 7), n, 1.0, 40, False) for n in range(150)]
    undisturbed = {f.id: f.token_ids for f in asyncio.run(collect(Pool(engines, 16, 120.0), requests))}
    pool = Pool(engines, 16, 120.0)

    async def with_a_kill() -> list[Finished]:
        answers: list[Finished] = []
        async with aclosing(pool.generate(requests)) as drawn:
            async for f in drawn:
                answers.append(f)
                if len(answers) == 20:
                    kill(engines[1])
        return answers

    answers = asyncio.run(with_a_kill())
    assert set(pool.engines) == {0, 2}
    assert sorted(f.id for f in answers) == list(range(150))
    assert {f.id: f.token_ids for f in answers} == undisturbed


def nodes_that_stay() -> Any:
    return SimpleNamespace(hold=lambda nodes: None, places=SimpleNamespace(idle=list))


class Drill:
    """A fleet of one rank and these engines, in which engines are killed."""

    def __init__(self, engines: Mapping[int, Any], folder: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fleet, "BUCKET_SECONDS", 60.0)
        self.model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
        rank = new_rank(folder, 0.05)
        parameters = [Parameter(n, "float32", tuple(p.shape)) for n, p in self.model.named_parameters()]
        settings = ["cluster.gpus=3", "placement.disaggregated.trainingGpus=1", "rollout.engines=3"]
        spec = validation.parse(overrides.apply(yaml12.load_file(TINY), settings)).spec
        run = Run(
            name="drill", namespace="local", uid="1", attempt=1, submission_id=f"{RUN}-1", spec=spec,
            plan=make_plan(spec), output="",
        )  # fmt: skip
        self.control = Control(run.plan)
        self.fleet = Fleet(
            run=run,
            ranks=Ranks([rank], 1),
            pool=Pool({e: a for e, a in engines.items() if lives(a)}, 16, 120.0),
            buckets=make_buckets(parameters, 8_000),
            address="127.0.0.1",
            versions=Versions(trainer="", vllm="", deepspeed="", ray="", torch=""),
            site=nodes_that_stay(),
            engines=Engines(self.start, [0, 1, 2], self.control, log, replaces=True),
            without_mps=None,
        )
        self.engines = engines
        self.slots = {e: s for s in run.plan.slots() for e in s.engines}

    async def start(self, engine: int) -> Any:
        actor = new_engine(self.slots[engine])
        await actor.start.remote(SETUP)
        return actor

    async def everyone_back(self, version: int) -> None:
        """Syncs until all engines live again and draw from the rank's weights."""
        async with asyncio.timeout(600):
            await self.fleet.sync(version)
            while set(self.fleet.pool.engines) != {0, 1, 2}:
                await asyncio.sleep(0.5)
                await self.fleet.sync(version)
        assert await self.versions() == dict.fromkeys((0, 1, 2), version)
        for actor in self.fleet.pool.engines.values():
            assert await difference(actor, self.model) < 1e-4

    async def versions(self) -> dict[int, int]:
        return {e: await a.version.remote() for e, a in self.fleet.pool.engines.items()}


@pytest.fixture
def drill(
    engines: dict[int, Any], qwen2: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Drill]:
    drill = Drill(engines, qwen2(True, 5), Log(tmp_path / "driver.log", console=True), monkeypatch)
    yield drill
    engines.update(drill.fleet.pool.engines)


@pytest.mark.long
async def test_an_engine_that_is_killed_while_idle_is_missed_at_the_sync_and_comes_back(drill: Drill) -> None:
    await drill.everyone_back(1)  # one was killed above
    kill(drill.fleet.pool.engines[2])
    await drill.fleet.sync(2)
    assert await drill.versions() == {0: 2, 1: 2}
    await drill.everyone_back(3)


async def test_an_engine_that_is_killed_in_the_middle_of_a_sync_is_left_out_of_it(drill: Drill) -> None:
    await drill.everyone_back(4)
    victim = random.randrange(3)
    actor, moment = drill.fleet.pool.engines[victim], random.uniform(0.0, 0.8)
    pid = await actor.__ray_call__.remote(lambda _: os.getpid())
    asyncio.get_running_loop().call_later(moment, os.kill, pid, signal.SIGKILL)
    await asyncio.wait_for(drill.fleet.sync(5), 300)
    left = {e: 5 for e in range(3) if e != victim}
    assert await drill.versions() == left, f"engine {victim} killed after {moment:.3f} s"
    for engine in drill.fleet.pool.engines.values():
        assert await difference(engine, drill.model) < 1e-4
    assert len([f async for f in drill.fleet.pool.generate(REQUESTS)]) == len(REQUESTS)
    await drill.everyone_back(6)


async def test_fewer_engines_are_kept_and_more_come_back_as_they_are_asked_for(drill: Drill) -> None:
    await drill.everyone_back(7)
    drill.control.apply({"engines": 1})
    await drill.fleet.sync(8)
    assert await drill.versions() == {0: 8}
    await drill.fleet.sync(9)
    assert await drill.versions() == {0: 9}, "what is not wanted is not started again"
    assert drill.fleet.pool.lost == 0, "an engine that is sent away is not lost"
    drill.control.apply({"engines": 3})
    await drill.everyone_back(10)


@pytest.mark.long
async def test_without_any_engine_the_sync_waits_for_one_to_come_back(drill: Drill) -> None:
    await drill.everyone_back(11)
    for actor in drill.fleet.pool.engines.values():
        kill(actor)
    with pytest.raises(TrainerFailure, match="no rollout engine is left") as failure:
        [f async for f in drill.fleet.pool.generate(REQUESTS)]
    assert failure.value.reason is FailureReason.LOST_ENGINES
    await drill.fleet.sync(12)
    assert len([f async for f in drill.fleet.pool.generate(REQUESTS)]) == len(REQUESTS)
    await drill.fleet.engines.close()


async def test_a_rank_that_ends_in_a_sync_ends_the_run(drill: Drill) -> None:
    drill.fleet.pool.join(0, next(iter(drill.fleet.pool.engines.values())))
    (rank,) = drill.fleet.ranks.actors
    ray.kill(rank)
    with pytest.raises(TrainerFailure, match="rank 0 ended while") as failure:
        await asyncio.wait_for(drill.fleet.sync(13), 300)
    assert failure.value.reason is FailureReason.LOST_RANK
