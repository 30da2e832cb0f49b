"""Everything that `simplerl plan` says, as one document."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simplerl_api.failures import TrainerFailure
from simplerl_api.memory import GIB, MemoryEstimate, MemoryPart, Phase
from simplerl_api.model_shape import ModelShape
from simplerl_api.plan import Plan, make_plan
from simplerl_api.residence import USABLE, Residence, host_copies, reside, shardings
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import Optimizer, ZeroStage
from simplerl_trainer.models import judges
from simplerl_trainer.planning import chosen, model_shape
from simplerl_trainer.planning.model_shape import KnownModel, UnknownModel
from simplerl_trainer.policy import zero_settings

ASSUMED_GIB = 80.0
"""Memory of one GPU where nobody says what it is: an A100 or H100."""

Report = dict[str, Any]


def report(spec: Spec, gpu_gib: float | None) -> Report:
    """The report of a valid spec, as a JSON document.

    `gpu_gib`: memory of one GPU; absent: 80 GiB, or a slot's share of its pod's limit where cluster.cpuOnly. Raises
    PlanError.
    """
    model = model_shape.find(spec.model)
    known = None if isinstance(model, UnknownModel) else model.shape
    plan = make_plan(spec, parameters=known.parameters if known else None)
    device = _memory_of_a_slot(spec, plan) if gpu_gib is None else gpu_gib
    rewards, elsewhere = _reward_models(spec)
    if known is not None:
        memory, residence = _memory(known, spec, plan, rewards, device)
        plan = plan.model_copy(update={"zero_stage": residence.zero_stage})
    out: Report = {
        "plan": plan.document(),
        "slots": [slot.document() for slot in plan.slots()],
        "optimizerSteps": {
            "samplesPerStep": spec.rollout.samples_per_step,
            "perStep": plan.optimizer_steps_per_step,
            "inAll": plan.optimizer_steps_per_step * spec.training.steps,
        },
        "chosen": [{"field": c.field, "value": c.value, "why": c.why} for c in chosen.choices(spec, plan, known)],
        "deepspeed": None,
        "memory": None,
        "warnings": [],
    }
    if isinstance(model, UnknownModel):
        return out | {"model": {"unknown": model.why}, "warnings": [model.why]}
    return out | {
        "model": {
            "source": model.source,
            "family": model.family,
            "parameters": model.shape.parameters,
            "shape": model.shape.document(),
        },
        "deepspeed": deepspeed(spec, plan, model, None if spec.cluster.cpu_only else int(device * GIB)),
        "memory": {
            "perGpuGiB": device,
            "assumed": gpu_gib is None and not spec.cluster.cpu_only,
            "residence": residence.document(),
            "parts": [{"phase": part.phase.value, "name": part.name, "GiB": gib(part.bytes)} for part in memory.parts],
            "totalGiB": {phase.value: gib(memory.total(phase)) for phase in Phase},
        },
        "warnings": [*elsewhere, *warnings(spec, plan, memory, residence, device)],
    }


def deepspeed(spec: Spec, plan: Plan, model: KnownModel, gpu_bytes: int | None) -> dict[str, Any] | None:
    """DeepSpeed's settings of each trained model, the very ones that the ranks give it; None under stage 0, which is
    plain data parallel without DeepSpeed."""
    if plan.zero_stage is ZeroStage.REPLICATED:
        return None

    def settings(parameters: int, optimizer: Optimizer) -> dict[str, Any]:
        return zero_settings.configuration(
            parameters,
            plan.zero_stage,
            plan.precision,
            model.layers,
            cuda=not spec.cluster.cpu_only,
            resident=zero_settings.resident(parameters, plan.precision, gpu_bytes),
            max_grad_norm=optimizer.max_grad_norm,
            offload=spec.training.offload,
        )

    found = {"actor": settings(model.shape.parameters, spec.training.actor)}
    if spec.algorithm.has_critic:
        found["critic"] = settings(model.shape.body + model.shape.hidden, spec.training.critic)
    return found


def _reward_models(spec: Spec) -> tuple[list[ModelShape], list[str]]:
    """The shapes of the reward models that are on this machine, and a sentence for each that is not."""
    shapes, elsewhere = [], []
    for i, reward in enumerate(spec.rewards):
        if reward.model is not None and reward.model.hub is not None:
            elsewhere.append(
                f"a reward model's memory is not estimated: rewards[{i}].model.hub is {reward.model.hub.name}, which "
                "is on a hub"
            )
        elif reward.model is not None:
            try:
                shapes.append(judges.read(Path(reward.model.path or ""), f"rewards[{i}].model.path").shape)
            except TrainerFailure as e:
                elsewhere.append(f"a reward model's memory is not estimated: {e}")
    return shapes, elsewhere


def _memory(
    shape: ModelShape, spec: Spec, plan: Plan, rewards: Sequence[ModelShape], device_gib: float
) -> tuple[MemoryEstimate, Residence]:
    """The estimate, and what the ranks will do for it to fit."""
    found = shardings(shape, spec, plan, rewards)
    shared = any(slot.rank is not None and slot.engines for slot in plan.slots())
    share = spec.rollout.gpu_memory_utilization if shared else 0.0
    if spec.cluster.cpu_only:
        wanted = bool(spec.training.gradient_checkpointing)
        stays = Residence(zero_stage=plan.zero_stage, sleeps=False, frozen_leave=False, gradient_checkpointing=wanted)
        return found[0].plain, stays
    residence = reside(found, share, int(device_gib * GIB))
    (taken,) = (s for s in found if s.zero_stage is residence.zero_stage)
    memory = taken.checkpointed if residence.gradient_checkpointing else taken.plain
    copies = MemoryPart(phase=Phase.HOST, name="copies of what leaves the GPU", bytes=host_copies(memory, residence))
    return memory.model_copy(update={"parts": (*memory.parts, copies)} if copies.bytes else {}), residence


def warnings(spec: Spec, plan: Plan, memory: MemoryEstimate, residence: Residence, device_gib: float) -> list[str]:
    """A sentence for each thing that does not fit into a GPU or its pod (on CPU, into a slot's share of its pod)."""
    out = []
    device = "a slot's share of its pod" if spec.cluster.cpu_only else "a GPU"
    limit = int(device_gib * GIB * (1 if spec.cluster.cpu_only else USABLE))
    training = memory.training(frozen=not residence.frozen_leave)
    if training > limit:
        out.append(
            f"training needs {gib(training):g} GiB of {device}, which has {gib(limit):g} for it: use more GPUs, "
            "training.offload.optimizer, or lower training.maxTokensPerMicroBatch"
        )
    host = memory.total(Phase.HOST) * plan.gpus_per_node
    pod = plan.worker_resources.limits.get("memory")
    if pod and not spec.cluster.cpu_only and host > _gib_of(pod) * GIB:
        out.append(
            f"what the ranks of a pod keep in its memory needs {gib(host):g} GiB, and cluster.workers.resources limits "
            f"it to {pod}: raise that, or use more GPUs"
        )
    share = device_gib * GIB * spec.rollout.gpu_memory_utilization
    fixed = sum(p.bytes for p in memory.parts if p.phase is Phase.ROLLOUT and "KV cache" not in p.name)
    cache = memory.total(Phase.ROLLOUT) - fixed
    if fixed >= share:
        out.append(
            f"the engines' weights and activations need {gib(fixed):g} GiB of {device}, more than "
            f"rollout.gpuMemoryUtilization {spec.rollout.gpu_memory_utilization:g} leaves of it ({gib(share):g}): use "
            "fewer engines a GPU, or lower rollout.maxNumBatchedTokens"
        )
    elif fixed + cache > share:
        out.append(
            f"the KV cache of rollout.maxNumSeqs {spec.rollout.max_num_seqs} longest samples would take "
            f"{gib(cache):g} GiB, and there are {gib(share - fixed):g}: fewer samples are decoded at once"
        )
    return out


def gib(size: float) -> float:
    """Bytes as GiB, to three digits."""
    return float(f"{size / GIB:.3g}")


def _memory_of_a_slot(spec: Spec, plan: Plan) -> float:
    if not spec.cluster.cpu_only:
        return ASSUMED_GIB
    limit = plan.worker_resources.limits.get("memory") or plan.worker_resources.requests.get("memory")
    return _gib_of(limit) / plan.gpus_per_node if limit else ASSUMED_GIB


_UNITS = {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "m": 1e-3,
}


def _gib_of(quantity: str) -> float:
    """A Kubernetes quantity of bytes in GiB."""
    number = quantity.rstrip("KMGTikm")
    return float(number) * _UNITS.get(quantity[len(number) :], 1) / GIB
