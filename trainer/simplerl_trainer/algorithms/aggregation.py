"""From the terms of single tokens to one loss.

The loss is sum_t w_t l_t over all tokens of an optimizer step, wherever they lie: neither packing nor the number of
ranks changes it, since the weights are made of counts over all ranks.
"""

from collections.abc import Sequence

import torch


def token_weights(
    lengths: Sequence[int], aggregation: str, *, tokens: float, samples: float, longest: int, like: torch.Tensor
) -> torch.Tensor:
    """The weight of each token [T] of responses that lie end to end; `lengths` are their token counts.

    `tokens` and `samples` count the whole optimizer step on all ranks, `longest` is the greatest number of tokens that
    a response may have:

        Token     1 / tokens                        DAPO (https://arxiv.org/abs/2503.14476, equation 8)
        Sequence  1 / (samples x tokens of the response)   GRPO (https://arxiv.org/abs/2402.03300, equation 3)
        Constant  1 / (samples x longest)           Dr.GRPO (https://arxiv.org/abs/2503.20783, listing 1)

    The result has the type and device of `like`. Raises ValueError for another aggregation.
    """
    counts = torch.tensor(lengths, dtype=torch.int64, device=like.device)
    match aggregation:
        case "Token":
            each = torch.full((len(lengths),), 1 / tokens, dtype=like.dtype, device=like.device)
        case "Sequence":
            each = 1 / (samples * counts.to(like.dtype))
        case "Constant":
            each = torch.full((len(lengths),), 1 / (samples * longest), dtype=like.dtype, device=like.device)
        case _:
            raise ValueError(f"the loss aggregation is {aggregation}: use Token, Sequence or Constant")
    return torch.repeat_interleave(each, counts)
