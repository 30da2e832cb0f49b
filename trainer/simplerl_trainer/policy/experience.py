"""Experience: a pack with everything that the update needs, computed under the weights of the step's start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import torch

from simplerl_api.spec.algorithm import Algorithm, KlPlacement
from simplerl_trainer.algorithms.decoupled import CAP, behavior_weights
from simplerl_trainer.algorithms.gae import gae
from simplerl_trainer.algorithms.kl import kl
from simplerl_trainer.algorithms.rewards import token_rewards
from simplerl_trainer.algorithms.whitening import Moments, moments, whiten
from simplerl_trainer.policy.packing import Pack


@dataclass(frozen=True, slots=True)
class Experience:
    """All per-token tensors are [R] float32, in nats where they are log-probabilities."""

    pack: Pack
    logprobs: torch.Tensor
    entropies: torch.Tensor
    reference: torch.Tensor | None
    """Log-probabilities of the reference model; None where there is none."""
    values: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    weights: torch.Tensor | None
    """Of decoupled PPO, where the samples were drawn from older weights; None where they were not."""


@torch.no_grad()
def collect(
    packs: Sequence[Pack],
    actor: Callable[..., Any],
    reference: Callable[..., Any] | None,
    critic: Callable[..., Any],
    temperature: float,
    algorithm: Algorithm,
    *,
    decoupled: bool,
) -> list[Experience]:
    """The experience of these packs, with advantages that are not yet whitened.

    `decoupled`: the samples come from older weights, and all have the engine's log-probabilities.

    The models run over the same packs as in the update, so that the ratio of new to old probability is exactly 1
    before the first optimizer step. Collective under ZeRO-3: every rank must bring the same number of packs.
    """
    drawn = [actor(pack, temperature, True) for pack in packs]
    references = [reference(pack, temperature)[0] if reference else None for pack in packs]
    values = [critic(pack) for pack in packs]
    ppo, placement = algorithm.chosen(), algorithm.kl.placement
    made = []
    for pack, (logprobs, entropies), ref, value in zip(packs, drawn, references, values, strict=True):
        penalty = None
        if ref is not None and placement is KlPlacement.REWARD:
            penalty = kl(logprobs, ref, algorithm.kl.estimator)
        rewards = token_rewards(pack.scores, pack.response_lengths, penalty, algorithm.kl.coefficient)
        advantages, returns = gae(rewards, value, pack.response_lengths, ppo.gamma, ppo.gae_lambda)
        weights = behavior_weights(logprobs, pack.probe_logprobs) if decoupled else None
        made.append(Experience(pack, logprobs, entropies, ref, value, advantages, returns, weights))
    return made


def totals(made: Sequence[Experience], algorithm: Algorithm) -> tuple[dict[str, float], dict[str, float]]:
    """Sums over tokens, and maxima; those of all ranks together make the step's metrics."""
    sums: dict[str, float] = dict.fromkeys(
        ("kl", "entropy", "probe.count", "probe.sum", "weight.count", "weight.sum", "weight.capped"), 0.0
    )
    for name in ("advantage", "value", "return", "residual"):
        sums |= dict.fromkeys((f"{name}.count", f"{name}.total", f"{name}.squares"), 0.0)
    greatest = 0.0
    for e in made:
        sums["entropy"] += float(e.entropies.double().sum())
        if e.reference is not None:
            sums["kl"] += float(kl(e.logprobs, e.reference, algorithm.kl.estimator).double().sum())
        for name, x in (
            ("advantage", e.advantages),
            ("value", e.values),
            ("return", e.returns),
            ("residual", e.returns - e.values),
        ):
            for part, number in zip(("count", "total", "squares"), moments(x).tolist(), strict=True):
                sums[f"{name}.{part}"] += number
        if e.weights is not None:
            sums["weight.count"] += e.weights.numel()
            sums["weight.sum"] += float(e.weights.double().sum())
            sums["weight.capped"] += float((e.weights >= CAP).sum())
            continue  # the gap below is then the step between two versions, not a mismatch
        gap = (e.logprobs[e.pack.probe] - e.pack.probe_logprobs).abs()
        sums["probe.count"] += gap.numel()
        sums["probe.sum"] += float(gap.double().sum())
        greatest = max(greatest, float(gap.max()) if gap.numel() else 0.0)
    return sums, {"probe.max": greatest}


def metrics(sums: dict[str, float], maxima: dict[str, float], *, has_reference: bool) -> dict[str, float]:
    """The step's metrics from the sums and maxima of all ranks."""
    over = {name: _moments(sums, name) for name in ("advantage", "value", "return", "residual")}
    tokens, probed = over["value"].count, sums["probe.count"]
    spread = over["return"].variance
    found = {
        "entropy": sums["entropy"] / tokens,
        "value_mean": over["value"].mean,
        "return_mean": over["return"].mean,
        "advantage_mean": over["advantage"].mean,
        "advantage_std": over["advantage"].std,
        "explained_variance": 1 - over["residual"].variance / spread if spread else nan,
        "mismatch_max": maxima["probe.max"] if probed else nan,
        "mismatch_mean": sums["probe.sum"] / probed if probed else nan,
        "trained_tokens": tokens,
    }
    if weighed := sums["weight.count"]:
        del found["mismatch_max"], found["mismatch_mean"]
        found["behavior_weight_mean"] = sums["weight.sum"] / weighed
        found["behavior_weight_capped"] = sums["weight.capped"] / weighed
    return found | ({"kl": sums["kl"] / tokens} if has_reference else {})


def whitened(made: Sequence[Experience], sums: dict[str, float]) -> list[Experience]:
    """The experience with advantages of mean 0 and standard deviation 1 over all ranks' tokens of the step."""
    over = _moments(sums, "advantage")
    return [replace(e, advantages=whiten(e.advantages, over)) for e in made]


def _moments(sums: dict[str, float], name: str) -> Moments:
    return Moments(sums[f"{name}.count"], sums[f"{name}.total"], sums[f"{name}.squares"])
