"""Engines that come and go with their pods: what of the spec allows it, and how many there are at most."""

from simplerl_api.engine_count import MAX_ENGINES_PER_GPU
from simplerl_api.plan_error import PlanError
from simplerl_api.spec.job import Spec
from simplerl_api.spec.rollout import Elastic

RANK_NODE, ENGINE_NODE = "simplerl_ranks", "simplerl_engines"
"""Resources of Ray, one on each node: they tell the pods that stay from those that come and go."""


def check(spec: Spec, elastic: Elastic) -> None:
    """Raises PlanError where the engines of a spec cannot come and go."""
    if spec.placement is None or spec.placement.disaggregated is None:
        raise PlanError(
            "rollout.elastic needs placement.disaggregated: the pods of colocated engines hold ranks, and cannot go"
        )
    if spec.training.deterministic:
        raise PlanError(
            "training.deterministic is true, which needs engines that stay: leave out that or rollout.elastic"
        )
    gpus, per_node = spec.cluster.gpus, min(spec.cluster.gpus, spec.cluster.gpus_per_node)
    ranks = spec.placement.disaggregated.training_gpus
    if ranks % per_node:
        below = ranks // per_node * per_node
        fits = [str(n) for n in (below, below + per_node) if 0 < n < gpus]
        use = " or ".join(fits) if fits else f"a cluster.gpus of more than {per_node}"
        raise PlanError(
            f"placement.disaggregated.trainingGpus is {ranks}, which does not fill pods of "
            f"{per_node} GPUs, but with rollout.elastic pods without ranks come and go: use {use}"
        )
    _check_most(spec, elastic, (gpus - ranks) // spec.rollout.tensor_parallel_size)
    least, most, asked = elastic.min_engines, elastic.max_engines, spec.rollout.engines
    if least > most:
        raise PlanError(f"rollout.elastic.minEngines is {least}, more than maxEngines {most}: use at most {most}")
    if asked is not None and not least <= asked <= most:
        raise PlanError(
            f"rollout.engines is {asked}, outside of rollout.elastic: use {least} to {most}, or leave it out"
        )


def _check_most(spec: Spec, elastic: Elastic, places: int) -> None:
    size, most, each = spec.rollout.tensor_parallel_size, elastic.max_engines, spec.rollout.engines_per_gpu
    on = f"the {places} GPUs that roll out" if size == 1 else f"the {places} groups of {size} GPUs that roll out"
    if each is not None and most != places * each:
        raise PlanError(
            f"rollout.elastic.maxEngines is {most}, but rollout.enginesPerGpu {each} on {on} makes {places * each}: "
            f"use {places * each}, or leave enginesPerGpu out"
        )
    if most % places or most > places * MAX_ENGINES_PER_GPU:
        raise PlanError(
            f"rollout.elastic.maxEngines is {most}, but {on} hold {places} engines, or up to {MAX_ENGINES_PER_GPU} "
            f"times as many: use {places}, or other cluster.gpus"
        )
