"""The engines of an evaluation: those of a run, without ranks beside them."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Slot
from simplerl_trainer import answers, mps, own_ray, placement
from simplerl_trainer.actors import EngineActor
from simplerl_trainer.evaluation.machine import Layout, Machine
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup

START_SECONDS = 900.0
STALL_SECONDS = 1800.0
"""Longest that an engine may finish nothing."""
BATCH_INVARIANT = {"VLLM_BATCH_INVARIANT": "1"}
"""vLLM's kernels whose results do not depend on what else is in the batch, for GPUs that have them."""


@asynccontextmanager
async def serving(
    setup: EngineSetup, layout: Layout, machine: Machine
) -> AsyncIterator[tuple[Pool, Mapping[str, str]]]:
    """Engines of a model, and the versions of what runs them; they end with the context.

    Raises TrainerFailure naming the engine that does not start.
    """
    own_ray.start(max(machine.cpus, layout.engines * layout.tensor_parallel), cpu_only=not layout.gpus)
    daemon = None
    try:
        more = dict(BATCH_INVARIANT) if setup.deterministic and layout.gpus else {}
        if layout.per_gpu > 1:
            try:
                daemon = mps.Daemon()
                more |= daemon.environment
            except mps.Unavailable:
                pass  # they take turns on their GPU: slower, and all the same
        actors = {e: _actor(e, layout, more) for e in range(layout.engines)}
        own = replace(setup, gpu_memory_share=layout.share, tensor_parallel_size=layout.tensor_parallel)
        calls = {f"engine {e}": a.start.remote(own) for e, a in actors.items()}
        versions = await answers.within(START_SECONDS, "loading the model", calls, FailureReason.LOST_ENGINES)
        yield Pool(actors, setup.max_num_seqs, STALL_SECONDS, _kill, deterministic=setup.deterministic), versions[0]
    except TrainerFailure as failure:
        if failure.reason is not FailureReason.ROLLOUT_OUT_OF_MEMORY:
            raise
        said = f"the model does not fit: {failure.message.partition(': raise ')[0]}: lower --engines or --batch-size"
        raise TrainerFailure(failure.reason, said) from failure
    finally:
        ray.shutdown()
        if daemon is not None:
            daemon.stop()


def _actor(engine: int, layout: Layout, more: Mapping[str, str]) -> Any:
    gpus = layout.gpus_of(engine)
    slots = [Slot(index=g, node=0, gpu=g, rank=None, engines=(engine,)) for g in gpus]
    variables = placement.environment(slots, not layout.gpus)
    if layout.gpus and (visible := os.environ.get("CUDA_VISIBLE_DEVICES")):
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(visible.split(",")[g] for g in gpus)
    return (
        ray.remote(EngineActor)
        .options(
            num_cpus=0,
            num_gpus=0,
            max_restarts=0,
            max_concurrency=placement.ENGINE_CONCURRENCY,
            runtime_env={"env_vars": variables | dict(more)},
        )
        .remote()
    )


def _kill(engine: int, actor: Any, why: str) -> None:
    ray.kill(actor)  # one that is only silent must not come back
