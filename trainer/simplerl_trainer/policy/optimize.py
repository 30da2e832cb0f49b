"""One optimizer step of actor and critic over one rank's packs of an optimizer batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from simplerl_api.spec.algorithm import Algorithm, KlPlacement, Ppo
from simplerl_trainer.algorithms.kl import kl
from simplerl_trainer.algorithms.ppo import value_loss
from simplerl_trainer.algorithms.surrogate import surrogate
from simplerl_trainer.policy.experience import Experience
from simplerl_trainer.policy.trained import Trained


@dataclass(slots=True)
class Totals:
    """Sums and maxima over one rank's packs; those of all ranks together make the update's metrics."""

    losses: dict[str, float] = field(default_factory=dict)
    """Parts of the loss, each the sum of its weighted terms."""
    counts: dict[str, float] = field(default_factory=dict)
    """Sums over tokens, to be divided by their number."""
    maxima: dict[str, float] = field(default_factory=dict)

    def lose(self, **numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            self.losses[name] = self.losses.get(name, 0.0) + float(number.detach())

    def count(self, **numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            self.counts[name] = self.counts.get(name, 0.0) + float(number)

    def raise_to(self, **numbers: torch.Tensor) -> None:
        for name, number in numbers.items():
            # a nan must not be lost
            self.maxima[name] = float(torch.tensor(self.maxima.get(name, 0.0)).maximum(number.detach().cpu()))


def actor_gradients(
    actor: Trained,
    batch: Sequence[Experience],
    temperature: float,
    algorithm: Algorithm,
    kl_coefficient: float,
    totals: Totals,
) -> None:
    """Adds the gradient of this rank's part of the policy's loss, over the tokens t of its packs:

    sum_t w_t (surrogate_t - entropyCoefficient entropy_t + coefficient kl_t, where the KL's placement is Loss)
    """
    settings, loss_settings = algorithm.chosen(), algorithm.loss
    bonus = loss_settings.entropy_coefficient
    for position, e in enumerate(batch):
        o = e.observed
        logprobs, entropies = actor(o.pack, temperature, bonus > 0)
        # see algorithms/decoupled.py
        advantages = e.advantages if o.behavior is None else o.behavior * e.advantages
        found = surrogate(
            logprobs, o.logprobs, advantages, settings.clip_low, settings.clip_high, loss_settings.dual_clip
        )
        loss = (e.weights * found.loss).sum()
        totals.lose(policy_loss=loss)
        if bonus > 0:
            entropy = bonus * (e.weights * entropies).sum()
            totals.lose(entropy_bonus=entropy)
            loss = loss - entropy
        if o.reference is not None and algorithm.kl_placement is KlPlacement.LOSS:
            penalty = kl_coefficient * (e.weights * kl(logprobs, o.reference, algorithm.kl_estimator)).sum()
            totals.lose(kl_loss=penalty)
            loss = loss + penalty
        actor.backward(loss, last=position == len(batch) - 1)
        totals.count(clip_fraction=found.clipped, policy_shift=found.divergence)
        totals.raise_to(ratio_max=found.ratio_max, ratio_first_deviation=found.ratio_deviation)


def critic_gradients(critic: Trained, batch: Sequence[Experience], tokens: float, ppo: Ppo, totals: Totals) -> None:
    """Adds the gradient of this rank's part of the value loss: 1 / tokens x its sum.

    `tokens` are the response tokens of the whole optimizer batch on all ranks.
    """
    for position, e in enumerate(batch):
        o = e.observed
        assert o.values is not None, "a critic that learns was observed"
        assert e.returns is not None, "a critic that learns has returns"
        loss = value_loss(critic(o.pack), o.values, e.returns, ppo.value_clip).sum() / tokens
        critic.backward(loss, last=position == len(batch) - 1)
        totals.lose(value_loss=loss)
