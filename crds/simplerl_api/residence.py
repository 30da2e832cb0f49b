"""What a training rank shares out and what stays in the memory of its GPU. Pure: every rank decides alike."""

from collections.abc import Sequence

from simplerl_api.memory import FROZEN, PASSES, MemoryEstimate, Phase, estimate
from simplerl_api.model_shape import ModelShape
from simplerl_api.plan import Plan
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import ZeroStage
from simplerl_api.struct import Struct

USABLE = 0.92
"""Share of a GPU's memory that the estimate may fill: the rest is for CUDA, NCCL and what the allocators lose."""


class Sharding(Struct):
    """A ZeRO stage that a job may take, and what a rank then needs."""

    zero_stage: ZeroStage
    """What the ranks share out."""
    plain: MemoryEstimate
    """Without gradient checkpointing, where the spec leaves that open."""
    checkpointed: MemoryEstimate
    """With it, where the spec leaves that open."""


class Residence(Struct):
    """What the ranks share out and what stays in the memory of a training GPU, and when. The same on all ranks."""

    zero_stage: ZeroStage
    """What the ranks share out."""
    sleeps: bool
    """Whether ranks and engines leave the GPU to each other in turn; otherwise all of them stay."""
    frozen_leave: bool
    """Whether the models that are only run leave the GPU while others are trained."""
    gradient_checkpointing: bool
    """Whether activations are recomputed in the backward pass."""


def shardings(
    shape: ModelShape, spec: Spec, plan: Plan, reward_models: Sequence[ModelShape] = ()
) -> Sequence[Sharding]:
    """The ZeRO stages that a job may take, the least sharding first: the plan's alone where its ranks may not share
    less than it says."""
    stages = [plan.zero_stage]
    if plan.may_share_less(spec):
        # stage 0 is left out: stage 1 costs it nothing and shares the optimizer's states all the same
        stages = [ZeroStage.OPTIMIZER, ZeroStage.GRADIENTS, ZeroStage.PARAMETERS]
    found = []
    for stage in stages:
        own = plan.model_copy(update={"zero_stage": stage})
        plain, checkpointed = (
            estimate(shape, spec, own, reward_models, gradient_checkpointing=again) for again in (False, True)
        )
        found.append(Sharding(zero_stage=stage, plain=plain, checkpointed=checkpointed))
    return found


def reside(shardings: Sequence[Sharding], engines_share: float, gpu_bytes: int) -> Residence:
    """The least that must be done for a rank to fit on a GPU of `gpu_bytes`.

    `shardings` are those that may be chosen, the least first. `engines_share`: share of the GPU that engines on it take
    while they roll out, 0 where none are. First nothing is done, then ranks and engines take turns, then frozen models
    leave, then activations are recomputed; each with the least sharding that fits, since sharing more costs less time
    than any of them. Where nothing fits, all of it is done.
    """
    room = gpu_bytes * USABLE
    turns = (False, True) if engines_share > 0 else (False,)
    for checkpointing in (False, True):
        for frozen_leave in (False, True):
            for sleeps in turns:
                for sharding in shardings:
                    estimated = sharding.checkpointed if checkpointing else sharding.plain
                    engines = 0.0 if sleeps else engines_share * gpu_bytes
                    if estimated.training(frozen=not frozen_leave) + engines <= room:
                        return Residence(
                            zero_stage=sharding.zero_stage,
                            sleeps=sleeps,
                            frozen_leave=frozen_leave,
                            gradient_checkpointing=estimated.gradient_checkpointing,
                        )
    most = shardings[-1]
    return Residence(
        zero_stage=most.zero_stage,
        sleeps=engines_share > 0,
        frozen_leave=True,
        gradient_checkpointing=most.checkpointed.gradient_checkpointing,
    )


def host_copies(estimated: MemoryEstimate, residence: Residence) -> int:
    """Bytes of page-locked memory that a rank takes for what leaves its GPU: all but the passes where it sleeps, else
    the frozen models where they leave."""
    if not (residence.sleeps or residence.frozen_leave):
        return 0
    return sum(
        part.bytes
        for part in estimated.parts
        if part.phase is Phase.TRAINING
        and part.name not in PASSES
        and (residence.sleeps or part.name.startswith(FROZEN))
    )
