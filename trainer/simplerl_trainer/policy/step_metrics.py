"""The metrics of an annotated step, by sums over the tokens of all ranks."""

from collections.abc import Sequence
from math import nan

import torch

from simplerl_trainer.algorithms.decoupled import CAP
from simplerl_trainer.algorithms.whitening import Moments, moments
from simplerl_trainer.policy.experience import Observed


def totals(
    observed: Sequence[Observed],
    advantages: Sequence[torch.Tensor],
    returns: Sequence[torch.Tensor | None],
    *,
    has_critic: bool,
) -> tuple[dict[str, float], dict[str, float]]:
    """Sums over tokens, and maxima; those of all ranks together make the step's metrics.

    `advantages` and `returns` [R] are those of each pack, before whitening.
    """
    names = ("kl", "entropy", "probe.count", "probe.sum", "weight.count", "weight.sum", "weight.capped")
    sums: dict[str, float] = dict.fromkeys(names, 0.0)
    for name in ("advantage", *(("value", "return", "residual") if has_critic else ())):
        sums |= dict.fromkeys((f"{name}.count", f"{name}.total", f"{name}.squares"), 0.0)
    greatest = 0.0
    for o, advantage, returned in zip(observed, advantages, returns, strict=True):
        sums["entropy"] += float(o.entropies.double().sum())
        if o.kl is not None:
            sums["kl"] += float(o.kl.double().sum())
        _add(sums, "advantage", advantage)
        if o.values is not None and returned is not None:
            _add(sums, "value", o.values)
            _add(sums, "return", returned)
            _add(sums, "residual", returned - o.values)
        if o.behavior is not None:
            sums["weight.count"] += o.behavior.numel()
            sums["weight.sum"] += float(o.behavior.double().sum())
            sums["weight.capped"] += float((o.behavior >= CAP).sum())
            continue  # the gap below is then the step between two versions, not a mismatch
        gap = (o.logprobs[o.pack.probe] - o.pack.probe_logprobs).abs()
        sums["probe.count"] += gap.numel()
        sums["probe.sum"] += float(gap.double().sum())
        greatest = max(greatest, float(gap.max()) if gap.numel() else 0.0)
    return sums, {"probe.max": greatest}


def metrics(
    sums: dict[str, float], maxima: dict[str, float], *, has_reference: bool, has_critic: bool
) -> dict[str, float]:
    """The step's metrics from the sums and maxima of all ranks."""
    advantage, probed = moments_of(sums, "advantage"), sums["probe.count"]
    found = {
        "entropy": sums["entropy"] / advantage.count,
        "advantage_mean": advantage.mean,
        "advantage_std": advantage.std,
        "mismatch_max": maxima["probe.max"] if probed else nan,
        "mismatch_mean": sums["probe.sum"] / probed if probed else nan,
        "trained_tokens": advantage.count,
    }
    if weighed := sums["weight.count"]:
        del found["mismatch_max"], found["mismatch_mean"]
        found["behavior_weight_mean"] = sums["weight.sum"] / weighed
        found["behavior_weight_capped"] = sums["weight.capped"] / weighed
    if has_critic:
        spread = moments_of(sums, "return").variance
        found |= {
            "value_mean": moments_of(sums, "value").mean,
            "return_mean": moments_of(sums, "return").mean,
            "explained_variance": 1 - moments_of(sums, "residual").variance / spread if spread else nan,
        }
    return found | ({"kl": sums["kl"] / advantage.count} if has_reference else {})


def moments_of(sums: dict[str, float], name: str) -> Moments:
    """The summed moments of a name."""
    return Moments(sums[f"{name}.count"], sums[f"{name}.total"], sums[f"{name}.squares"])


def _add(sums: dict[str, float], name: str, x: torch.Tensor) -> None:
    for part, number in zip(("count", "total", "squares"), moments(x).tolist(), strict=True):
        sums[f"{name}.{part}"] += number
