"""What the planner chose where a spec leaves a field out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from simplerl_api.model_shape import ModelShape
from simplerl_api.plan import Plan
from simplerl_api.spec.job import Spec


@dataclass(frozen=True, slots=True)
class Choice:
    """A field that is absent, what holds instead, and why."""

    field: str
    value: Any
    why: str


def choices(spec: Spec, plan: Plan, model: ModelShape | None) -> list[Choice]:
    """Every choice that changes what a job does; `model` is None where it is not known here."""
    return list(_choices(spec, plan, model))


def _choices(spec: Spec, plan: Plan, model: ModelShape | None) -> Iterator[Choice]:
    training, rollout, cluster = spec.training, spec.rollout, spec.cluster
    on_cpu = cluster.cpu_only
    if spec.placement is None:
        yield Choice("placement", "colocated", "every GPU trains and rolls out, in turn")
    if rollout.engines is None and rollout.engines_per_gpu is None and rollout.elastic is None:
        several = max(len(slot.engines) for slot in plan.slots()) > 1
        yield Choice(
            "rollout.engines",
            plan.engines,
            "a small model: several engines on each GPU that rolls out" if several else "by the GPUs that roll out",
        )
    kl = spec.algorithm.kl
    if kl.coefficient > 0 and kl.placement is None:
        yield Choice("algorithm.kl.placement", spec.algorithm.kl_placement.value, "as the algorithm's paper has it")
    if kl.coefficient > 0 and kl.estimator is None:
        yield Choice("algorithm.kl.estimator", spec.algorithm.kl_estimator.value, "as the algorithm's paper has it")
    if training.zero_stage is None:
        yield Choice(
            "training.zeroStage",
            int(plan.zero_stage),
            _why_so_much(spec, plan, model),
        )
    if training.precision is None:
        yield Choice("training.precision", plan.precision.value, "cluster.cpuOnly" if on_cpu else "on GPUs")
    for field, section, name in (
        ("rollout.promptsPerStep", rollout, "prompts_per_step"),
        ("rollout.samplesPerPrompt", rollout, "samples_per_prompt"),
        ("training.trainBatchSize", training, "train_batch_size"),
    ):
        if name not in section.model_fields_set:
            yield Choice(field, getattr(section, name), "the documented default")
    if plan.max_tokens_per_micro_batch is not None and training.max_tokens_per_micro_batch is None:
        yield Choice("training.maxTokensPerMicroBatch", plan.max_tokens_per_micro_batch, "holds the longest sample")
    if spec.checkpoint.claim_name is None:
        yield Choice("checkpoint.claimName", "none", "nothing outlives the pods")
    if cluster.workers.resources is None:
        slots = "a slot" if plan.gpus_per_node == 1 else f"{plan.gpus_per_node} slots"
        yield Choice("cluster.workers.resources", _resources(plan.worker_resources), f"for {slots} a pod")
    if cluster.head.resources is None:
        yield Choice("cluster.head.resources", _resources(plan.head_resources), "Ray's services and the driver")
    if cluster.shm_size is None:
        why = "weights and objects travel by it" if on_cpu else "NCCL, Ray and objects use it"
        yield Choice("cluster.shmSize", plan.shm_size, why)


def _why_so_much(spec: Spec, plan: Plan, model: ModelShape | None) -> str:
    if plan.ranks == 1:
        return "one rank has nobody to share weights with"
    if not plan.may_share_less(spec):
        return f"{plan.ranks} ranks share the weights"
    if model is None:
        return "the most: the ranks share less where the model, which is not known here, fits their GPUs"
    return "the least that fits, by the memory below; the ranks reckon with that of their own GPUs"


def _resources(resources: Any) -> str:
    def listed(amounts: dict[str, str]) -> str:
        return ", ".join(f"{name} {amount}" for name, amount in amounts.items())

    return f"requests {listed(resources.requests)}; limits {listed(resources.limits)}"
