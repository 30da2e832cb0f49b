"""The clipped surrogate of PPO (https://arxiv.org/abs/1707.06347), which all algorithms share."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The policy's loss of each token, and what became of the ratios."""

    loss: torch.Tensor
    """[T], with a gradient."""
    clipped: torch.Tensor
    """Number of tokens whose ratio was clipped, so that they give no gradient."""
    ratio_max: torch.Tensor
    """Greatest ratio; 0 where there are no tokens."""
    ratio_deviation: torch.Tensor
    """Greatest |ratio - 1|; 0 where there are no tokens."""
    divergence: torch.Tensor
    """Sum of ratio - 1 - log ratio, an estimate of KL(old || new) (http://joschu.net/blog/kl-approx.html)."""


def surrogate(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> Surrogate:
    """The clipped surrogate, equation 7 of the paper with separate bounds (clip-higher of DAPO,
    https://arxiv.org/abs/2503.14476):

        ratio_t = exp(logprobs_t - old_logprobs_t)
        s_t     = min(ratio_t A_t, clip(ratio_t, 1 - clip_low, 1 + clip_high) A_t)
        l_t     = - s_t

    With `dual_clip` c > 1 (dual-clip PPO, https://arxiv.org/abs/1912.09729), where A_t < 0:

        l_t     = - max(s_t, c A_t)

    All tensors are [T]; log-probabilities in nats.
    """
    log_ratio = logprobs - old_logprobs
    ratio = log_ratio.exp()
    free = ratio * advantages
    bounded = torch.minimum(free, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages)
    if dual_clip is not None:
        bounded = torch.where(advantages < 0, torch.maximum(bounded, dual_clip * advantages), bounded)
    with torch.no_grad():
        clipped = (bounded != free).sum()
        divergence = (ratio - 1 - log_ratio).sum()
        ratio_max, deviation = _greatest(ratio), _greatest((ratio - 1).abs())
    return Surrogate(-bounded, clipped, ratio_max, deviation, divergence)


def _greatest(x: torch.Tensor) -> torch.Tensor:
    return x.max() if x.numel() else x.new_zeros(())
