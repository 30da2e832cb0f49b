"""Engines in processes of their own: both roads of the weights, two engines in one slot, and one that is killed."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from transformers import Qwen2ForCausalLM

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Slot
from simplerl_trainer.actors import EngineActor
from simplerl_trainer.placement import environment
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.weights.buckets import Parameter, make_buckets
from simplerl_trainer.weights.roads import prefix, roads
from simplerl_trainer.weights.sync import sync

RUN = "test-on-ray"
SLOTS = [
    Slot(index=0, node=0, gpu=0, rank=0, engines=(0,)),
    Slot(index=1, node=0, gpu=1, rank=None, engines=(1, 2)),
]


class Sending:
    """The part of a rank that sends its weights."""

    def __init__(self, folder: str) -> None:
        self._model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def send(self, sender: Any, buckets: Any) -> None:
        from simplerl_trainer.weights.send import send

        parameters = dict(self._model.named_parameters())
        send(sender, (torch.cat([parameters[p.name].detach().flatten() for p in b.parameters]) for b in buckets))


@pytest.fixture(scope="module")
def engines(qwen2: Callable[..., Path]) -> Iterator[Mapping[int, Any]]:
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 * 2**20, log_to_driver=False)
    setup = EngineSetup(str(qwen2(True)), False, True, 64, 16, 512, 1.0, (1,), 0, verify_weights=True)
    actors = {
        e: ray.remote(EngineActor)
        .options(
            num_cpus=0,
            max_concurrency=8,
            runtime_env={"env_vars": environment([slot], cpu_only=True)},
        )
        .remote()
        for slot in SLOTS
        for e in slot.engines
    }
    ray.get([a.start.remote(setup) for a in actors.values()], timeout=120)
    yield actors
    ray.shutdown()


def test_one_sync_reaches_every_engine_by_its_road(
    engines: Mapping[int, Any], qwen2: Callable[..., Path], free_port: int
) -> None:
    folder = qwen2(True, 5)
    rank = ray.remote(Sending).options(num_cpus=0).remote(str(folder))
    model = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    parameters = [Parameter(n, "float32", tuple(p.shape)) for n, p in model.named_parameters()]
    buckets = make_buckets(parameters, 40_000)
    the_roads = roads(SLOTS, run=RUN, address="127.0.0.1", port=free_port, cpu_only=True, timeout=30.0)
    for version in (1, 2):
        asyncio.run(sync([rank], engines, the_roads, buckets, version, 60.0))
        assert ray.get([a.version.remote() for a in engines.values()], timeout=10) == [version] * 3
    for actor in engines.values():
        assert greatest_difference(actor, model) < 1e-4
    assert not list(Path("/dev/shm").glob(Path(prefix(RUN)).name + "*"))


def greatest_difference(actor: Any, model: Qwen2ForCausalLM) -> float:
    prompts = [tuple(range(3, 13 + n)) for n in range(6)]
    pool = Pool({0: actor}, 16, 30.0)
    answers = asyncio.run(collect(pool, [Request(n, p, n, 1.0, 12, True) for n, p in enumerate(prompts)]))
    greatest = 0.0
    for f in answers:
        ids, start = torch.tensor([*prompts[f.id], *f.token_ids]), len(prompts[f.id])
        with torch.no_grad():
            logprobs = model(ids[None]).logits[0, start - 1 : -1].log_softmax(-1).gather(-1, ids[start:, None])[:, 0]
        greatest = max(greatest, (logprobs - torch.tensor(f.logprobs)).abs().max().item())
    return greatest


async def collect(pool: Pool, requests: list[Request]) -> list[Finished]:
    return [f async for f in pool.generate(requests)]


def test_the_work_of_a_killed_engine_is_done_by_the_others_with_the_same_samples(engines: Mapping[int, Any]) -> None:
    requests = [Request(n, (5, 6, 7), n, 1.0, 40, False) for n in range(150)]
    undisturbed = {f.id: f.token_ids for f in asyncio.run(collect(Pool(engines, 16, 30.0), requests))}
    pool = Pool(engines, 16, 30.0)

    async def with_a_kill() -> list[Finished]:
        answers: list[Finished] = []
        async with aclosing(pool.generate(requests)) as drawn:
            async for f in drawn:
                answers.append(f)
                if len(answers) == 20:
                    ray.kill(engines[1])
        return answers

    answers = asyncio.run(with_a_kill())
    assert set(pool.engines) == {0, 2}
    assert sorted(f.id for f in answers) == list(range(150))
    assert {f.id: f.token_ids for f in answers} == undisturbed


def test_a_sync_with_an_engine_that_is_gone_names_it(engines: Mapping[int, Any], free_port: int) -> None:
    to_one = roads(SLOTS, run=RUN, address="127.0.0.1", port=free_port, cpu_only=True, timeout=3.0, engines=[1])
    buckets = make_buckets([Parameter("lm_head.weight", "float32", (2,))])
    with pytest.raises(TrainerFailure, match="engine 1 ended while") as failure:
        asyncio.run(sync([], {1: engines[1]}, to_one, buckets, 3, 10.0))
    assert failure.value.reason is FailureReason.WEIGHT_SYNC_FAILED


def test_the_last_engine_lost_ends_the_rollout(engines: Mapping[int, Any]) -> None:
    pool = Pool({0: engines[0]}, 16, 30.0)
    ray.kill(engines[0])
    with pytest.raises(TrainerFailure, match="no rollout engine is left: engine 0 ended last") as failure:
        asyncio.run(collect(pool, [Request(0, (5, 6), 0, 1.0, 4, False)]))
    assert failure.value.reason is FailureReason.LOST_ENGINES
