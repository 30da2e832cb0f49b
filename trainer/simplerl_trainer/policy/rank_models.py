"""The models of a rank. To be imported after group.join only: DeepSpeed reads what that sets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from transformers import AutoModelForSequenceClassification, PreTrainedConfig

from simplerl_api.residence import Residence, reside
from simplerl_api.spec.training import Optimizer, Precision, ZeroStage
from simplerl_trainer.policy import group, liger, model, zero
from simplerl_trainer.policy.protocol import JudgeSetup, RankSetup
from simplerl_trainer.policy.replicated import Replicated
from simplerl_trainer.policy.trained import Trained


@dataclass(frozen=True, slots=True)
class RankModels:
    """What a rank trains, and what it only runs."""

    actor: Trained
    critic: Trained | None
    """Where the algorithm has one."""
    reference: zero.Frozen | None
    """Where there is a KL term."""
    judges: Sequence[tuple[JudgeSetup, zero.Frozen]]
    """The reward models."""

    @property
    def trained(self) -> dict[str, Trained]:
        """By the names that checkpoints give them."""
        return {"actor": self.actor} | ({"critic": self.critic} if self.critic else {})

    @property
    def frozen(self) -> Sequence[zero.Frozen]:
        return [m for m in (self.reference, *(m for _, m in self.judges)) if m is not None]


def choose_residence(setup: RankSetup, device: torch.device) -> Residence:
    """What stays on the GPUs, by the smallest of them and the largest share that engines take of one; as the setup says
    where there are no GPUs. Collective: ranks of different stages would wait for each other for ever."""
    needs, size = setup.memory, setup.gpu_bytes or zero.gpu_bytes(device)
    if needs is None or size is None:
        return Residence(
            zero_stage=setup.zero_stage,
            sleeps=needs is not None and needs.engines_share > 0,
            frozen_leave=False,
            gradient_checkpointing=bool(setup.training.gradient_checkpointing),
        )
    most = group.maxima({"gpu": -float(size), "engines": needs.engines_share}, device)
    return reside(needs.shardings, most["engines"], int(-most["gpu"]))


def load_models(setup: RankSetup, residence: Residence, device: torch.device) -> RankModels:
    """All models of a rank, each read from its folder and shared out as `residence` says.

    Raises TrainerFailure(INVALID_INPUT) for a model that is not supported.
    """
    folder, dtype = setup.model_folder, torch.bfloat16 if setup.precision is Precision.BF16 else torch.float32
    config = model.read_config(folder, setup.max_tokens)
    model.check_weights(folder, config)
    liger.fuse(config.model_type, dtype, device)
    actor = partial(model.load_actor, folder, config, dtype, setup.vocabulary)
    critic = partial(model.load_critic, folder, config, dtype, setup.training.seed)
    return RankModels(
        actor=_trained(setup, residence, device, actor, setup.training.actor),
        critic=_trained(setup, residence, device, critic, setup.training.critic)
        if setup.algorithm.has_critic
        else None,
        reference=_frozen(setup, residence, device, actor) if setup.algorithm.kl.coefficient > 0 else None,
        judges=[
            (j, _frozen(setup, residence, device, partial(model.load_reward_model, j.folder, _checked(j), dtype)))
            for j in setup.judges
        ],
    )


def _trained(
    setup: RankSetup,
    residence: Residence,
    device: torch.device,
    load: Callable[[], torch.nn.Module],
    optimizer: Optimizer,
) -> Trained:
    stage, offload = residence.zero_stage, setup.training.offload
    module = zero.load_partitioned(load, stage, setup.precision, device, offload)
    if residence.gradient_checkpointing:
        model.checkpoint_layers(module)
    module.train()
    if stage is ZeroStage.REPLICATED:
        return Replicated(module, optimizer, device)
    layers = model.layer_classes(module)
    return zero.Sharded(module, optimizer, stage, setup.precision, layers, device, offload=offload)


def _frozen(
    setup: RankSetup, residence: Residence, device: torch.device, load: Callable[[], torch.nn.Module]
) -> zero.Frozen:
    stage, offload = residence.zero_stage, setup.training.offload
    module = zero.load_partitioned(load, stage, setup.precision, device, offload)
    return zero.Frozen(module, stage, setup.precision, model.layer_classes(module), device, offload)


def _checked(judge: JudgeSetup) -> PreTrainedConfig:
    config = model.read_config(judge.folder, 1, judge.field)
    model.check_weights(judge.folder, config, judge.field, AutoModelForSequenceClassification)
    return config
