"""The processes of a run on real GPUs, used step by step under a Ray of our own."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch

from simplerl_trainer import local
from simplerl_trainer.fleet import Fleet
from simplerl_trainer.launch import launch
from simplerl_trainer.policy.protocol import Annotation, Trajectory, Update
from simplerl_trainer.policy.step_plan import make_step_plan
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.rollout import kv_cache
from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.site import reserve

EOS = 1
VOCABULARY = 1024
PROMPTS = [(5, 9, 200, 17), (3, 3, 8), (400, 7, 7, 7, 90, 12, 31)]
_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
}


@dataclass
class Slot:
    """The processes of a run, used step by step."""

    fleet: Fleet
    _batches: int = 0

    @property
    def cache_gib(self) -> float:
        """The KV caches of all engines of the first GPU that rolls out."""
        rollout, weights = self.fleet.run.spec.rollout, model_bytes(Path(self.fleet.run.spec.model.path))
        count = max(len(s.engines) for s in self.fleet.run.plan.slots())
        total = torch.cuda.get_device_properties(0).total_memory
        return count * kv_cache.on_cuda(total, rollout.gpu_memory_utilization / count, weights) / 2**30

    def run(self, awaitable: Any) -> Any:
        return asyncio.run(awaitable)

    def requests(self, count: int, tokens: int, seed: int = 0) -> list[Request]:
        """One request each for `count` prompts, with log-probabilities."""
        return [
            Request(i, PROMPTS[i % len(PROMPTS)], seed + i, temperature=1.0, max_new_tokens=tokens, logprobs=True)
            for i in range(count)
        ]

    def draw(self, count: int, tokens: int = 24, seed: int = 0) -> list[Finished]:
        """The responses to such requests."""

        async def drawn() -> list[Finished]:
            return [f async for f in self.fleet.pool.generate(self.requests(count, tokens, seed))]

        found: list[Finished] = asyncio.run(drawn())
        assert sorted(f.id for f in found) == list(range(count)), "every request is answered once"
        return found

    def annotate(self, drawn: Sequence[Finished]) -> Annotation:
        """The ranks' view of these responses; its mismatch compares the engines' log-probabilities with the ranks'."""
        work = {
            f.id: Trajectory(
                f.id,
                PROMPTS[f.id % len(PROMPTS)],
                f.token_ids,
                float(f.token_ids[0] % 2),
                f.logprobs,
                group=f.id % len(PROMPTS),
            )
            for f in drawn
        }
        run = self.fleet.run
        plan = make_step_plan(
            {i: len(t.prompt_ids) + len(t.response_ids) for i, t in work.items()},
            ranks=run.plan.ranks,
            train_batch_size=run.spec.training.train_batch_size,
            max_tokens=run.plan.max_tokens_per_micro_batch,
            seed=0,
        )
        self._batches = len(plan)
        return asyncio.run(self.fleet.ranks.annotate(plan, work, step=1, kl_coefficient=0.01))

    def update(self) -> list[Update]:
        """All optimizer steps of the step that was annotated last."""

        async def updated() -> list[Update]:
            return [await self.fleet.ranks.update(b, 0) for b in range(self._batches)]

        return asyncio.run(updated())

    def sync(self, version: int) -> None:
        """Brings the ranks' weights into the engines; checksums are compared there."""
        asyncio.run(self.fleet.sync(version))


def model_bytes(folder: Path) -> int:
    """Bytes of a model folder's weights."""
    return sum(f.stat().st_size for f in folder.glob("*.safetensors"))


def document(model: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A small job of 64 samples a step; `changes` replace whole members of the spec."""
    spec: dict[str, Any] = {
        "model": {"path": str(model)},
        "data": {
            "train": {"file": str(model / "questions.jsonl")},
            "promptTemplate": "{question}",
            "maxPromptTokens": 32,
        },
        "rewards": [{"name": "math", "math": {}}],
        "rollout": {
            "enginesPerGpu": 1,
            "verifyWeights": True,
            "gpuMemoryUtilization": 0.3,
            "maxNumSeqs": 64,
            "promptsPerStep": 32,
            "samplesPerPrompt": 2,
            "sampling": {"maxNewTokens": 400},
        },
        "training": {
            "steps": 2,
            "trainBatchSize": 32,
            "maxTokensPerMicroBatch": 1024,
            "actor": {"learningRate": 1e-3},
            "critic": {"learningRate": 1e-3},
        },
        "cluster": {"gpus": 1, "gpusPerNode": 1},
    }
    for name, value in changes.items():
        spec[name] = {**spec[name], **value} if isinstance(spec.get(name), dict) else value
    return {
        "apiVersion": "simplerl.io/v1alpha1",
        "kind": "SimpleRLJob",
        "metadata": {"name": "gpu-test"},
        "spec": spec,
    }


@contextmanager
def started(folder: Path, model: Path, environment: Mapping[str, str] | None = None, **changes: Any) -> Iterator[Slot]:
    """The processes of a run of `model`, in `folder`; `environment` is added to theirs."""
    run = local.prepare(document(model, changes), folder / "run", own_ray=True)
    more = _ENVIRONMENT | dict(environment or {})
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    ray.init(address="local", include_dashboard=False, object_store_memory=256 * 2**20, log_to_driver=True)
    try:

        async def start() -> Fleet:
            site = await reserve(run, one_machine=True)
            log = Log(folder / "driver.log", console=True)
            return await launch(run, site, [EOS], VOCABULARY, Control(run.plan), log)

        yield Slot(asyncio.run(start()))
    finally:
        ray.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
