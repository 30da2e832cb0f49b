"""The planner: a pure function from a spec to nodes, slots, ranks and engines.

A slot is one GPU (or the CPU that stands for it). It holds at most one training rank, and any number of engines. An
engine spans tensorParallelSize neighbouring slots of one node, with a worker in each:

    colocated:      ranks = gpus           engines = gpus / tensorParallelSize x enginesPerGpu, on every slot
    disaggregated:  ranks = trainingGpus   engines = (gpus - trainingGpus) / tensorParallelSize x enginesPerGpu, on the
                                           other slots
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from simplerl_api import batch_sizes, consistency, default_resources, elastic, engine_count
from simplerl_api.job_defaults import JobDefaults
from simplerl_api.plan_error import PlanError
from simplerl_api.spec.algorithm import OVERLONG
from simplerl_api.spec.cluster import Resources
from simplerl_api.spec.job import Spec
from simplerl_api.spec.rollout import Overlap
from simplerl_api.spec.training import Precision, ZeroStage
from simplerl_api.struct import Struct, Text


class PlacementKind(StrEnum):
    """Which GPUs train and which roll out."""

    COLOCATED = "Colocated"
    DISAGGREGATED = "Disaggregated"


class Slot(Struct):
    """One GPU, or the CPU that stands for it."""

    index: int
    """Position among all slots."""
    node: int
    """Position of its worker pod."""
    gpu: int
    """Position among the GPUs of its pod."""
    rank: int | None
    """The training rank that lives here."""
    engines: tuple[int, ...]
    """The engines of which a worker lives here."""


class Plan(Struct):
    """What is made of a spec; fixed at the first start and shown in status.plan."""

    placement: PlacementKind
    """Colocated or Disaggregated."""
    gpus: int = Field(ge=1)
    """GPUs of the job."""
    nodes: int = Field(ge=1)
    """Worker pods."""
    gpus_per_node: int = Field(ge=1)
    """GPUs of each worker pod."""
    ranks: int = Field(ge=1)
    """Training ranks."""
    engines: int = Field(ge=1)
    """vLLM engines."""
    min_engines: int | None = Field(default=None, ge=1)
    """Engines with which the run starts, where those beyond come and go with their pods; absent: all stay."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """Slots of each engine."""
    zero_stage: ZeroStage
    """What the ranks share out; where training.zeroStage is absent the most that they do."""
    precision: Precision
    """Type of weights and activations."""
    optimizer_steps_per_step: int = Field(ge=1)
    """Optimizer steps of one step."""
    max_tokens_per_micro_batch: int | None = None
    """Tokens of the largest micro-batch, chosen where the spec names none; absent with gradientAccumulationSteps."""
    gradient_accumulation_steps: int | None = None
    """Micro-batches of each rank in an optimizer step, where the spec says so."""
    durable: bool
    """Whether checkpoints outlive the pods."""
    head_resources: Resources
    """Requests and limits of the head's Ray container."""
    worker_resources: Resources
    """Requests and limits of each worker's Ray container."""
    shm_size: Text
    """Size of /dev/shm in each pod."""
    image: Annotated[str, Field(min_length=1, max_length=766)] | None = None
    """Image of all containers, resolved once."""
    job_defaults: JobDefaults | None = None
    """What the operator's settings add where the spec leaves fields out."""

    def slots(self) -> Sequence[Slot]:
        """All slots in order: node by node, training slots first where disaggregated."""
        colocated = self.placement is PlacementKind.COLOCATED
        rolling = [i for i in range(self.gpus) if colocated or i >= self.ranks]
        size = self.tensor_parallel_size
        groups = [rolling[i : i + size] for i in range(0, len(rolling), size)]
        base, more = divmod(self.engines, len(groups))
        engines: dict[int, tuple[int, ...]] = {}
        first = 0
        for position, group in enumerate(groups):
            count = base + (position < more)
            engines |= dict.fromkeys(group, tuple(range(first, first + count)))
            first += count
        return [
            Slot(
                index=i,
                node=i // self.gpus_per_node,
                gpu=i % self.gpus_per_node,
                rank=i if i < self.ranks else None,
                engines=engines.get(i, ()),
            )
            for i in range(self.gpus)
        ]

    @property
    def training_nodes(self) -> int:
        """Worker pods with ranks, which come first."""
        return -(-self.ranks // self.gpus_per_node)

    @property
    def least_nodes(self) -> int:
        """Worker pods without which the run does not start."""
        return self.nodes if self.min_engines is None else self.nodes_for(self.min_engines)

    def nodes_for(self, engines: int) -> int:
        """Worker pods of the ranks and of so many engines, where engines come and go."""
        apart = self.nodes - self.training_nodes
        return self.training_nodes + -(-engines * apart // self.engines)

    def steady(self) -> "Plan":
        """The plan whose engines all start, and stay."""
        return self.model_copy(update={"min_engines": None})

    def may_share_less(self, spec: Spec) -> bool:
        """Whether the ranks may share out less than zero_stage says, where their GPUs have room: they know the model
        and the GPUs, which a plan does not."""
        return (
            spec.training.zero_stage is None
            and self.ranks > 1
            and not (spec.cluster.cpu_only or spec.training.offload.parameters)
        )

    def engine_slots(self) -> Mapping[int, Sequence[Slot]]:
        """The slots of each engine by its number, in the order of its workers."""
        slots = self.slots()
        return {e: [s for s in slots if e in s.engines] for e in range(self.engines)}


def make_plan(
    spec: Spec, image: str | None = None, parameters: int | None = None, defaults: JobDefaults | None = None
) -> Plan:
    """The plan of a spec; `parameters` are the model's, where they are known, `defaults` those of the operator.

    Raises PlanError with a sentence that names the field, its value and what would fit.
    """
    if (disagreement := consistency.fault(spec)) is not None:
        raise PlanError(disagreement)
    cluster = spec.cluster
    gpus, per_node = cluster.gpus, cluster.gpus_per_node
    if gpus > per_node and gpus % per_node:
        below = gpus // per_node * per_node
        raise PlanError(
            f"cluster.gpus is {gpus}, which is not a multiple of cluster.gpusPerNode {per_node}: "
            f"use {below} or {below + per_node} GPUs, or {_divisors_text(gpus, per_node)} a node"
        )
    disaggregated = spec.placement.disaggregated if spec.placement else None
    if disaggregated and disaggregated.training_gpus >= gpus:
        if gpus == 1:
            raise PlanError("cluster.gpus is 1, too few for placement.disaggregated: use at least 2, or colocated")
        raise PlanError(
            f"placement.disaggregated.trainingGpus is {disaggregated.training_gpus}, which leaves none of "
            f"cluster.gpus {gpus} to roll out: use at most {gpus - 1}"
        )
    if spec.rollout.overlap is Overlap.ONE_STEP and not disaggregated:
        raise PlanError(
            "rollout.overlap is OneStep, which needs placement.disaggregated: colocated engines sleep while their GPUs "
            "train"
        )
    if spec.rollout.overlap is Overlap.ONE_STEP and spec.training.deterministic:
        raise PlanError(
            "training.deterministic is true, which needs rollout.overlap None, not OneStep: a resumed run has no batch "
            "that was drawn ahead"
        )
    if spec.algorithm.dynamic_sampling and spec.rollout.samples_per_prompt == 1:
        raise PlanError(
            "algorithm.dynamicSampling needs rollout.samplesPerPrompt of at least 2, not 1: one sample has no variance"
        )
    if spec.rollout.elastic is not None:
        elastic.check(spec, spec.rollout.elastic)
    ranks = disaggregated.training_gpus if disaggregated else gpus
    rolling = gpus - ranks if disaggregated else gpus
    engine_count.check_tensor_parallel(spec, rolling)
    engines = engine_count.engines(spec, rolling, parameters, shared=disaggregated is None)
    optimizer_steps = batch_sizes.optimizer_steps(spec, ranks)
    micro_batch = batch_sizes.micro_batch_tokens(spec)
    batch_sizes.check_accumulation(spec, ranks)
    _check_best(spec)
    _check_algorithm(spec)
    nodes = max(1, gpus // per_node)
    worker_gpus = min(gpus, per_node)
    return Plan(
        placement=PlacementKind.DISAGGREGATED if disaggregated else PlacementKind.COLOCATED,
        gpus=gpus,
        nodes=nodes,
        gpus_per_node=worker_gpus,
        ranks=ranks,
        engines=engines,
        min_engines=spec.rollout.elastic.min_engines if spec.rollout.elastic else None,
        tensor_parallel_size=spec.rollout.tensor_parallel_size,
        zero_stage=_zero_stage(spec, ranks),
        precision=spec.training.precision or (Precision.FP32 if cluster.cpu_only else Precision.BF16),
        optimizer_steps_per_step=optimizer_steps * spec.algorithm.chosen().epochs,
        max_tokens_per_micro_batch=micro_batch,
        gradient_accumulation_steps=spec.training.gradient_accumulation_steps,
        durable=spec.checkpoint.claim_name is not None,
        head_resources=cluster.head.resources or default_resources.of_head(cluster.cpu_only),
        worker_resources=cluster.workers.resources
        or default_resources.of_worker(cluster.cpu_only, worker_gpus, defaults),
        shm_size=cluster.shm_size or ("1Gi" if cluster.cpu_only else "16Gi"),
        image=_image(cluster.image or image, defaults),
        job_defaults=defaults,
    )


def _divisors_text(gpus: int, per_node: int) -> str:
    fits = [d for d in range(1, per_node + 1) if gpus % d == 0]
    return str(fits[-1])


def _check_best(spec: Spec) -> None:
    best, datasets = spec.checkpoint.best, [d.name for d in spec.evaluation.datasets] if spec.evaluation else []
    if best is not None and best not in datasets:
        offered = f"use one of {', '.join(datasets)}" if datasets else "give evaluation.datasets, or leave it out"
        raise PlanError(f"checkpoint.best is {best}, which is no evaluation data set: {offered}")


def _check_algorithm(spec: Spec) -> None:
    algorithm, rollout = spec.algorithm, spec.rollout
    if algorithm.has_groups and rollout.samples_per_prompt == 1:
        name = "reinforcePlusPlus.groupBaseline" if algorithm.reinforce_plus_plus else algorithm.tag
        raise PlanError(
            f"rollout.samplesPerPrompt is 1, but algorithm.{name} compares the samples of a prompt with each other: "
            "use at least 2"
        )
    if algorithm.overlong and algorithm.overlong.buffer_tokens > rollout.sampling.max_new_tokens:
        raise PlanError(
            f"algorithm.overlong.bufferTokens is {algorithm.overlong.buffer_tokens}, more than "
            f"rollout.sampling.maxNewTokens: use at most {rollout.sampling.max_new_tokens}"
        )
    if any(reward.name == OVERLONG for reward in spec.rewards) and algorithm.overlong:
        raise PlanError(
            f"rewards has one of the name {OVERLONG}, which algorithm.overlong shows its penalty by: name it otherwise"
        )
    warmup = spec.training.critic.warmup_steps
    if warmup and warmup >= spec.training.steps:
        raise PlanError(
            f"training.critic.warmupSteps is {warmup}, which leaves none of training.steps {spec.training.steps} to "
            f"the policy: use at most {max(spec.training.steps - 1, 0)}"
        )


def _zero_stage(spec: Spec, ranks: int) -> ZeroStage:
    if spec.training.zero_stage is not None:
        return spec.training.zero_stage
    if spec.training.offload.parameters:
        return ZeroStage.PARAMETERS
    return ZeroStage.PARAMETERS if ranks > 1 else ZeroStage.OPTIMIZER


def _image(name: str | None, defaults: JobDefaults | None) -> str | None:
    return name if name is None or defaults is None else defaults.image(name)
