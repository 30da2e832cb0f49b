"""Engines that span two slots, two of them side by side: weights by each road, and what is left when one ends."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
import torch
from transformers import Qwen2ForCausalLM

from simplerl_api.plan import Slot
from simplerl_trainer.actors import EngineActor
from simplerl_trainer.placement import environment
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.weights.buckets import Parameter, make_buckets
from simplerl_trainer.weights.roads import prefix, roads
from simplerl_trainer.weights.sync import sync

RUN = "test-tensor-parallel"
SLOTS = [
    Slot(index=0, node=0, gpu=0, rank=0, engines=(0, 1)),
    Slot(index=1, node=0, gpu=1, rank=None, engines=(0, 1)),
]
REQUESTS = [Request(n, tuple(range(3, 13 + n % 7)), n, 1.0, 24, True) for n in range(100)]


class Engine(EngineActor):
    """An engine that tells its process."""

    def pid(self) -> int:
        import os

        return os.getpid()


class Sending:
    """The part of a rank that sends its weights."""

    def __init__(self, folder: str) -> None:
        self._model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def send(self, sender: Any, buckets: Any) -> None:
        from simplerl_trainer.weights.send import send

        parameters = dict(self._model.named_parameters())
        send(sender, (torch.cat([parameters[p.name].detach().flatten() for p in b.parameters]) for b in buckets))


@dataclass(frozen=True, slots=True)
class Running:
    """The engines, with the processes of each."""

    actors: Mapping[int, Any]
    workers: Mapping[int, list[psutil.Process]]


@pytest.fixture(scope="module")
def engines(qwen2: Callable[..., Path]) -> Iterator[Running]:
    before = set(Path("/dev/shm").iterdir())
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    setup = EngineSetup(
        str(qwen2(False)), False, True, 64, 16, 512, 1.0, (1,), 0, tensor_parallel_size=2, verify_weights=True
    )
    options = {"num_cpus": 0, "max_concurrency": 8, "runtime_env": {"env_vars": environment(SLOTS, cpu_only=True)}}
    actors = {e: ray.remote(Engine).options(**options).remote() for e in (0, 1)}
    ray.get([a.start.remote(setup) for a in actors.values()], timeout=180)
    pids = {e: ray.get(a.pid.remote()) for e, a in actors.items()}
    yield Running(actors, {e: workers_of(pid) for e, pid in pids.items()})
    ray.shutdown()
    assert {p for p in Path("/dev/shm").iterdir() if not p.name.startswith(("plasma", "ray"))} <= before


def workers_of(pid: int) -> list[psutil.Process]:
    """The processes that an engine's process started to hold the model."""
    return [c for c in psutil.Process(pid).children(recursive=True) if "spawn_main" in " ".join(c.cmdline())]


async def collect(pool: Pool, kill: Callable[[], Any] | None = None) -> list[Finished]:
    answers: list[Finished] = []
    async with aclosing(pool.generate(REQUESTS)) as drawn:
        async for f in drawn:
            answers.append(f)
            if kill is not None and len(answers) == 20:
                kill()
    return answers


def test_a_sync_reaches_the_workers_of_every_engine(
    engines: Running, qwen2: Callable[..., Path], free_port: int
) -> None:
    folder = qwen2(False, 5)
    rank = ray.remote(Sending).options(num_cpus=0).remote(str(folder))
    model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    parameters = [Parameter(n, "float32", tuple(p.shape)) for n, p in model.named_parameters()]
    buckets = make_buckets(parameters, 40_000)
    the_roads = roads(SLOTS, run=RUN, address="127.0.0.1", port=free_port, cpu_only=True, timeout=30.0)
    for version in (1, 2):
        asyncio.run(sync([rank], engines.actors, the_roads, buckets, version, 60.0))
    assert not list(Path("/dev/shm").glob(Path(prefix(RUN)).name + "*"))
    for engine, actor in engines.actors.items():
        answers = asyncio.run(collect(Pool({engine: actor}, 16, 60.0)))
        assert {f.weights_version for f in answers} == {2}
        for f in answers[:20]:
            prompt = REQUESTS[f.id].prompt_ids
            ids = torch.tensor([*prompt, *f.token_ids])
            with torch.no_grad():
                logits = model(ids[None]).logits[0, len(prompt) - 1 : -1]
            expected = logits.log_softmax(-1).gather(-1, ids[len(prompt) :, None])[:, 0]
            torch.testing.assert_close(torch.tensor(f.logprobs), expected, atol=1e-4, rtol=0)


def test_an_engine_ends_with_its_worker_and_the_other_engine_does_its_work(engines: Running) -> None:
    first, second = engines.workers[0]
    pool = Pool(engines.actors, 16, 60.0)
    answers = asyncio.run(collect(pool, second.kill))
    assert set(pool.engines) == {1}
    assert sorted(f.id for f in answers) == list(range(100))
    assert gone([first, second])


def test_workers_end_with_their_engine(engines: Running) -> None:
    workers = engines.workers[1]
    assert len(workers) == 2
    ray.kill(engines.actors[1])
    assert gone(workers)


def gone(processes: list[psutil.Process], seconds: float = 30) -> bool:
    """Whether processes have ended, or do within some seconds; one that nobody has waited for has ended."""
    deadline = time.monotonic() + seconds
    while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
