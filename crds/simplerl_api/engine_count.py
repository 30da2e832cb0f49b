"""How many engines a job has, and on how many GPUs each of them lives."""

from simplerl_api.plan_error import PlanError
from simplerl_api.spec.job import Spec

MAX_ENGINES_PER_GPU = 8
SMALL_PARAMETERS = 1_000_000_000
"""A model of at most so many leaves its GPU idle under one engine, which is bound by its host's side."""
SMALL_ENGINES = 4
"""Engines of a small model on a GPU: on an H200 they drew three times as fast as one, and eight were slower."""


def check_tensor_parallel(spec: Spec, rolling: int) -> None:
    """Raises PlanError where engines of so many GPUs do not fit the `rolling` GPUs and their nodes."""
    size, per_node = spec.rollout.tensor_parallel_size, spec.cluster.gpus_per_node
    if spec.cluster.gpus > per_node and per_node % size:
        raise PlanError(
            f"rollout.tensorParallelSize is {size}, which does not divide cluster.gpusPerNode {per_node}, and an "
            f"engine lives on one node: use {_sizes_text(per_node, rolling)}"
        )
    if rolling % size:
        raise PlanError(
            f"rollout.tensorParallelSize is {size}, which does not divide the {rolling} GPUs that roll out: "
            f"use {_sizes_text(rolling)}"
        )


def _sizes_text(*gpus: int) -> str:
    return " or ".join(str(size) for size in (1, 2, 4, 8) if all(n % size == 0 for n in gpus))


def engines(spec: Spec, rolling: int, parameters: int | None, *, shared: bool) -> int:
    """How many engines the `rolling` GPUs hold; `shared`: ranks live there too. Raises PlanError."""
    rollout, size = spec.rollout, spec.rollout.tensor_parallel_size
    places = rolling // size
    on = f"{places} GPUs that roll out" if size == 1 else f"{places} groups of {size} GPUs that roll out"
    if rollout.elastic is not None:
        return rollout.elastic.max_engines
    if rollout.engines is None:
        return places * (rollout.engines_per_gpu or default_engines_per_gpu(spec, parameters))
    asked = rollout.engines
    if rollout.engines_per_gpu is not None and asked != places * rollout.engines_per_gpu:
        raise PlanError(
            f"rollout.engines is {asked}, but rollout.enginesPerGpu {rollout.engines_per_gpu} on {on} makes "
            f"{places * rollout.engines_per_gpu}: give one of the two"
        )
    if asked > places * MAX_ENGINES_PER_GPU:
        raise PlanError(
            f"rollout.engines is {asked}, more than {MAX_ENGINES_PER_GPU} on each of the {on}: use at most "
            f"{places * MAX_ENGINES_PER_GPU}"
        )
    if asked < places and not shared:
        raise PlanError(
            f"rollout.engines is {asked}, which leaves some of the {on} idle: use at least {places}, or raise "
            "placement.disaggregated.trainingGpus"
        )
    return asked


def default_engines_per_gpu(spec: Spec, parameters: int | None) -> int:
    """Engines on each GPU where the spec names none; `parameters` are the model's, where they are known."""
    small = parameters is not None and parameters <= SMALL_PARAMETERS
    whole = not spec.cluster.cpu_only and spec.rollout.tensor_parallel_size == 1
    return SMALL_ENGINES if small and whole else 1
