"""Experience: a pack with everything that the update needs, computed under the weights of the step's start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from simplerl_api.spec.algorithm import KlEstimator
from simplerl_trainer.algorithms.decoupled import behavior_weights
from simplerl_trainer.algorithms.kl import kl
from simplerl_trainer.policy.packing import Pack


@dataclass(frozen=True, slots=True)
class Observed:
    """A pack and what the models say of it. All per-token tensors are [R], in nats where they are log-probabilities."""

    pack: Pack
    logprobs: torch.Tensor
    entropies: torch.Tensor
    reference: torch.Tensor | None
    """Log-probabilities of the reference model; None where there is none."""
    kl: torch.Tensor | None
    """The estimate of KL(policy || reference) at each token; None without a reference model."""
    values: torch.Tensor | None
    """None without a critic."""
    behavior: torch.Tensor | None
    """Weights of decoupled PPO, where the samples were drawn from older weights; None where they were not."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What was observed of a pack, and what is learned from it. Tensors are [R]."""

    observed: Observed
    advantages: torch.Tensor
    returns: torch.Tensor | None
    """What the critic learns; None without one."""
    weights: torch.Tensor
    """Weight of each token in the policy's loss (algorithms/aggregation.py)."""


@torch.no_grad()
def observe(
    packs: Sequence[Pack],
    actor: Callable[..., Any],
    reference: Callable[..., Any] | None,
    critic: Callable[..., Any] | None,
    temperature: float,
    estimator: KlEstimator,
    *,
    decoupled: bool,
) -> list[Observed]:
    """Runs the models over these packs.

    `decoupled`: older weights drew them, and all samples have the log-probabilities of the engine that did.

    They are the same packs as in the update, so that the ratio of new to old probability is exactly 1 before the first
    optimizer step. Collective under ZeRO-3: every rank must bring the same number of packs.
    """
    drawn = [actor(pack, temperature, True) for pack in packs]
    references = [reference(pack, temperature)[0] if reference else None for pack in packs]
    values = [critic(pack) if critic else None for pack in packs]
    return [
        Observed(
            pack,
            logprobs,
            entropies,
            reference=ref,
            kl=None if ref is None else kl(logprobs, ref, estimator),
            values=value,
            behavior=behavior_weights(logprobs, pack.probe_logprobs) if decoupled else None,
        )
        for pack, (logprobs, entropies), ref, value in zip(packs, drawn, references, values, strict=True)
    ]
