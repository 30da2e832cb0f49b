"""The clipped losses of PPO (https://arxiv.org/abs/1707.06347), as sums over tokens.

Sums, not means: the caller divides by the tokens of the whole optimizer batch, so that neither packing nor the number
of ranks changes the loss.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """Sums over the tokens given."""

    loss: torch.Tensor
    """Scalar with a gradient."""
    clipped: torch.Tensor
    """Number of tokens whose ratio was clipped, so that they give no gradient."""
    ratio_max: torch.Tensor
    """Greatest ratio; 0 where there are no tokens."""
    ratio_deviation: torch.Tensor
    """Greatest |ratio - 1|; 0 where there are no tokens."""
    divergence: torch.Tensor
    """Sum of ratio - 1 - log ratio, an estimate of KL(old || new) (http://joschu.net/blog/kl-approx.html)."""


def policy_loss(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantages: torch.Tensor, clip_low: float, clip_high: float
) -> PolicyLoss:
    """The clipped surrogate, equation 7 of the paper with separate bounds:

        ratio_t = exp(logprobs_t - old_logprobs_t)
        loss    = - sum_t min(ratio_t A_t, clip(ratio_t, 1 - clip_low, 1 + clip_high) A_t)

    All arguments are [T]; log-probabilities in nats.
    """
    log_ratio = logprobs - old_logprobs
    ratio = log_ratio.exp()
    surrogate = ratio * advantages
    bounded = ratio.clamp(1 - clip_low, 1 + clip_high) * advantages
    with torch.no_grad():
        clipped = (bounded < surrogate).sum()
        divergence = (ratio - 1 - log_ratio).sum()
        ratio_max, deviation = _greatest(ratio), _greatest((ratio - 1).abs())
    return PolicyLoss(-torch.minimum(surrogate, bounded).sum(), clipped, ratio_max, deviation, divergence)


def value_loss(
    values: torch.Tensor, old_values: torch.Tensor, returns: torch.Tensor, value_clip: float
) -> torch.Tensor:
    """The clipped value loss of PPO's reference implementation (https://github.com/openai/baselines, ppo2):

        V'_t = old_t + clip(V_t - old_t, -value_clip, value_clip)
        loss = 1/2 sum_t max((V_t - R_t)^2, (V'_t - R_t)^2)

    All arguments are [T]. Returns a scalar.
    """
    bounded = old_values + (values - old_values).clamp(-value_clip, value_clip)
    return 0.5 * torch.maximum((values - returns).square(), (bounded - returns).square()).sum()


def _greatest(x: torch.Tensor) -> torch.Tensor:
    return x.max() if x.numel() else x.new_zeros(())
