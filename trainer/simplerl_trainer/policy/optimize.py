"""One optimizer step of actor and critic over one rank's packs of an optimizer batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from simplerl_api.spec.algorithm import Algorithm, KlPlacement
from simplerl_trainer.algorithms.kl import kl
from simplerl_trainer.algorithms.ppo import policy_loss, value_loss
from simplerl_trainer.policy.experience import Experience
from simplerl_trainer.policy.trained import Trained


@dataclass(slots=True)
class Totals:
    """Sums over tokens, and maxima, of one rank's packs."""

    sums: dict[str, float] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)

    def add(self, **numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(number)

    def raise_to(self, **numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            # a nan must not be lost
            self.maxima[name] = float(torch.tensor(self.maxima.get(name, 0.0)).maximum(number.detach().cpu()))


def actor_gradients(
    actor: Trained, batch: Sequence[Experience], tokens: float, temperature: float, algorithm: Algorithm, totals: Totals
) -> None:
    """Adds the gradient of this rank's part of the policy loss:

        1 / tokens x (sum of the clipped surrogate + coefficient x sum of KL, where its placement is Loss)

    `tokens` are the response tokens of the whole optimizer batch on all ranks.
    """
    ppo = algorithm.chosen()
    for position, e in enumerate(batch):
        logprobs, _ = actor(e.pack, temperature)
        advantages = e.advantages if e.weights is None else e.weights * e.advantages  # see algorithms.decoupled
        found = policy_loss(logprobs, e.logprobs, advantages, ppo.clip_low, ppo.clip_high)
        loss = found.loss
        if e.reference is not None and algorithm.kl.placement is KlPlacement.LOSS:
            penalty = algorithm.kl.coefficient * kl(logprobs, e.reference, algorithm.kl.estimator).sum()
            loss = loss + penalty
            totals.add(kl_loss=penalty.detach())
        actor.backward(loss / tokens, last=position == len(batch) - 1)
        totals.add(policy_loss=found.loss.detach(), clip_fraction=found.clipped, policy_shift=found.divergence)
        totals.raise_to(ratio_max=found.ratio_max, ratio_first_deviation=found.ratio_deviation)


def critic_gradients(
    critic: Trained, batch: Sequence[Experience], tokens: float, algorithm: Algorithm, totals: Totals
) -> None:
    """Adds the gradient of this rank's part of the value loss: 1 / tokens x its sum."""
    clip = algorithm.chosen().value_clip
    for position, e in enumerate(batch):
        loss = value_loss(critic(e.pack), e.values, e.returns, clip)
        critic.backward(loss / tokens, last=position == len(batch) - 1)
        totals.add(value_loss=loss.detach())
