"""From a score for each response to a reward for each token."""

from collections.abc import Sequence

import torch


def token_rewards(
    scores: torch.Tensor, lengths: Sequence[int], kl: torch.Tensor | None, coefficient: float
) -> torch.Tensor:
    """Flat rewards [T] of responses that lie end to end (https://arxiv.org/abs/1909.08593, equation 2, per token):

        r_t = [t is the last token of response i] score_i - coefficient kl_t

    `scores` [n] has one score a response, `lengths` their token counts, each at least 1; `kl` [T] in nats, or None
    where the KL term does not act on rewards.
    """
    counts = torch.tensor(lengths, dtype=torch.int64, device=scores.device)
    rewards = torch.zeros(sum(lengths), dtype=scores.dtype, device=scores.device)
    rewards[counts.cumsum(0) - 1] = scores
    return rewards if kl is None else rewards - coefficient * kl
