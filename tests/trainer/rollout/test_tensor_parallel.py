"""An engine that spans two slots, with another one beside it: weights by each road, and what is left when it ends."""

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
    Slot(index=0, node=0, gpu=0, rank=0, engines=(0,)),
    Slot(index=1, node=0, gpu=1, rank=None, engines=(0, 1)),
]
"""Engine 0 spans both; in the second slot its worker passes weights on to engine 1."""
REQUESTS = [Request(n, tuple(range(3, 13 + n % 7)), n, 1.0, 24, True) for n in range(100)]


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
    """The engines, and the processes that hold engine 0's model."""

    actors: Mapping[int, Any]
    workers: list[psutil.Process]


@pytest.fixture(scope="module")
def engines(qwen2: Callable[..., Path]) -> Iterator[Running]:
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    actors = {e: started(str(qwen2(False)), SLOTS if e == 0 else SLOTS[1:]) for e in (0, 1)}
    ray.get([start for _, start in actors.values()], timeout=300)
    yield Running({e: actor for e, (actor, _) in actors.items()}, workers())
    ray.shutdown()


def started(folder: str, slots: list[Slot]) -> tuple[Any, Any]:
    """An engine, and its start."""
    setup = EngineSetup(
        folder, False, True, 64, 16, 512, 1.0, (1,), 0, tensor_parallel_size=len(slots), verify_weights=True
    )
    variables = {"env_vars": environment(slots, cpu_only=True)}
    actor = ray.remote(EngineActor).options(num_cpus=0, max_concurrency=8, runtime_env=variables).remote()
    return actor, actor.start.remote(setup)


def workers() -> list[psutil.Process]:
    """The processes that engines of this test started to hold their model."""
    return [c for c in psutil.Process().children(recursive=True) if "VLLM::Worker" in c.name()]


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


def test_what_the_processes_share_has_no_name_that_could_stay_behind(engines: Running) -> None:
    assert len(engines.workers) == 2
    left = {file.stat().st_ino: file.name for file in Path("/dev/shm").iterdir() if file.is_file()}
    for process in engines.workers:
        lines = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8").splitlines()
        mapped = [int(line.split()[4]) for line in lines if "/dev/shm/" in line]
        assert mapped
        assert not [left[inode] for inode in mapped if inode in left]


def test_an_engine_ends_with_its_worker_and_another_engine_does_its_work(engines: Running) -> None:
    first, second = engines.workers
    pool = Pool(engines.actors, 16, 120.0)
    answers = asyncio.run(collect(pool, second.kill))
    assert set(pool.engines) == {1}
    assert sorted(f.id for f in answers) == list(range(100))
    assert gone([first, second])


@pytest.mark.long
def test_workers_end_with_their_engine(engines: Running, qwen2: Callable[..., Path]) -> None:
    before = workers()
    actor, start = started(str(qwen2(False)), SLOTS)
    ray.get(start, timeout=300)
    left = [worker for worker in workers() if worker not in before]
    assert len(left) == 2
    ray.kill(actor)
    assert gone(left)


def gone(processes: list[psutil.Process], seconds: float = 30) -> bool:
    """Whether processes have ended, or do within some seconds; one that nobody has waited for has ended."""
    deadline = time.monotonic() + seconds
    while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
