"""Where the processes of a run live: the plan's slots on Ray's nodes.

Ranks and engines are actors in the bundle of their slot's node (places.py) which ask for nothing themselves: several
share a GPU, and Ray could not divide it as the plan does.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.plan import Plan, Slot
from simplerl_trainer.places import Places

ENGINE_CONCURRENCY = 8
"""Calls that an engine answers at once: one that waits for responses must not hold up the others."""
_ON_CPU = {
    "DS_ACCELERATOR": "cpu",
    "OMP_NUM_THREADS": "1",
    "TORCH_COMPILE_DISABLE": "1",  # pods have no compiler
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # else every engine would take the first core
}
_ON_CUDA = {
    "VLLM_USE_FLASHINFER_SAMPLER": "0",  # unused for requests with seeds, and its kernels are compiled at first use
}
_ALWAYS = {
    "HF_HUB_OFFLINE": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray hides all GPUs from an actor that asks for none
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork of an actor would inherit its threads' locks
}


def bundles(plan: Plan, cpu_only: bool) -> Sequence[Mapping[str, float]]:
    """What is reserved on each node: exactly what a worker pod of the plan offers."""
    return [{_resource(cpu_only): float(plan.gpus_per_node)} for _ in range(plan.nodes)]


def strategy(plan: Plan, one_machine: bool) -> str:
    """How Ray spreads the bundles: each on a node of its own, but packed where one machine stands for all nodes."""
    return "STRICT_SPREAD" if plan.nodes > 1 and not one_machine else "PACK"


async def reserve(
    plan: Plan, cpu_only: bool, seconds: float, one_machine: bool = False, engines: int | None = None
) -> Places:
    """Reserves the plan's nodes; where engines come and go those of `engines`, of which the least must be there.

    Raises TrainerFailure(PlacementTimeout) after `seconds` seconds, which says what was wanted and what there is; at
    once where one machine stands for all nodes and is too small, since it does not grow.
    """
    places = Places(plan, bundles(plan, cpu_only), strategy(plan, one_machine))
    if plan.min_engines is not None:
        places.hold(range(plan.training_nodes, plan.nodes_for(engines or plan.engines)))
    if one_machine and ray.cluster_resources().get(_resource(cpu_only), 0.0) < plan.gpus:
        seconds = 0.0
    try:
        await asyncio.wait_for(places.least(), seconds)
    except TimeoutError as error:
        places.give_up()  # what it held of the nodes is free again
        offered = [n["Resources"] for n in ray.nodes() if n["Alive"]]
        free = ray.available_resources().get(_resource(cpu_only), 0.0)
        raise TrainerFailure(
            FailureReason.PLACEMENT_TIMEOUT, missing(plan, cpu_only, offered, free, seconds)
        ) from error
    return places


def missing(plan: Plan, cpu_only: bool, offered: Sequence[Mapping[str, float]], free: float, seconds: float) -> str:
    """The sentence for a cluster that does not offer the plan's nodes.

    `offered` are the resources of Ray's nodes; `free` is how much of the wanted one nobody uses, over all nodes.
    """
    name = _resource(cpu_only)
    nodes = plan.least_nodes
    wanted = f"{nodes} x {name}:{plan.gpus_per_node}"
    did_not = f"the run wanted {wanted} and the cluster did not offer it within {seconds:.0f} s"
    amounts = sorted((n.get(name, 0.0) for n in offered if n.get(name)), reverse=True)
    if not amounts:
        others = sorted({f"{k}:{v:g}" for n in offered for k, v in n.items() if k in ("CPU", "GPU")})
        has = f"it has no node with a {name}" + (f", only {', '.join(others)}" if others else "")
        return f"{did_not}; {has}: " + (
            "wait for its pods" if cpu_only else "check cluster.gpuResource, or set cluster.cpuOnly to train on CPUs"
        )
    enough = sum(a >= plan.gpus_per_node for a in amounts)
    has = f"it has {', '.join(f'{name}:{a:g}' for a in amounts)}"
    if enough < nodes:
        return (
            f"{did_not}; {has}, which is {enough} of the {nodes} nodes: wait for its pods, or lower cluster.gpus "
            "or cluster.gpusPerNode"
        )
    return f"{did_not}; {has}, of which {free:g} are free: wait until other work ends, or lower cluster.gpus"


def options(
    slots: Sequence[Slot], places: Places, cpu_only: bool, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Ray's options for an actor that lives in a slot, or spans several of one node, with `more` variables of its
    environment."""
    group, bundle = places.of(slots[0].node)
    return {
        "num_cpus": 0,
        "num_gpus": 0,
        "max_restarts": 0,  # a rank or engine that comes back has lost its state
        "scheduling_strategy": PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle),
        "runtime_env": {"env_vars": environment(slots, cpu_only) | dict(more or {})},
    }


def engine_options(
    slots: Sequence[Slot], places: Places, cpu_only: bool, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Ray's options for an engine that spans slots."""
    return options(slots, places, cpu_only, more) | {"max_concurrency": ENGINE_CONCURRENCY}


def environment(slots: Sequence[Slot], cpu_only: bool) -> dict[str, str]:
    """Environment of a rank or engine: its slots' GPUs alone, and what its libraries must know at their import."""
    gpus = ",".join(str(s.gpu) for s in slots)
    return {**_ALWAYS, **(_ON_CPU if cpu_only else _ON_CUDA | {"CUDA_VISIBLE_DEVICES": gpus})}


def _resource(cpu_only: bool) -> str:
    return "CPU" if cpu_only else "GPU"
