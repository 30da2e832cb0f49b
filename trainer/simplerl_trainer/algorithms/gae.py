"""Generalized advantage estimation (https://arxiv.org/abs/1506.02438), over responses that lie end to end.

A *flat* tensor [T] holds the tokens of all responses, one response after the other; `lengths` are their token counts,
so there are no masked places.
"""

from collections.abc import Sequence

import torch


def gae(
    rewards: torch.Tensor, values: torch.Tensor, lengths: Sequence[int], gamma: float, gae_lambda: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages and returns of every token, equations 16 and 11 of the paper:

        delta_t = r_t + gamma V(s_t+1) - V(s_t)        with V = 0 after a response's last token
        A_t     = delta_t + gamma lambda A_t+1         (A = 0 after the last token)
        R_t     = A_t + V(s_t)

    `rewards` [T] and `values` [T] are flat; values[t] is V of the state in which token t was chosen. Returns flat
    advantages [T] and returns [T].

    The sum over later tokens is made by doubling: after k rounds each token holds the sum of its next 2^k deltas, so a
    response of L tokens takes log2 L rounds whatever the number of responses.
    """
    ends = _ends(lengths, rewards.device)
    deltas = rewards + gamma * _later(values, ends, 1) - values
    advantages, decay, hop = deltas, gamma * gae_lambda, 1
    while hop < max(lengths, default=0):
        advantages = advantages + decay * _later(advantages, ends, hop)
        decay, hop = decay * decay, hop * 2
    return advantages, advantages + values


def _ends(lengths: Sequence[int], device: torch.device) -> torch.Tensor:
    """[T]: for each token the position after its response's last one."""
    counts = torch.tensor(lengths, dtype=torch.int64, device=device)
    return torch.repeat_interleave(counts.cumsum(0), counts)


def _later(x: torch.Tensor, ends: torch.Tensor, hop: int) -> torch.Tensor:
    """[T]: x of the token `hop` places later in the same response, 0 where there is none."""
    shifted = torch.nn.functional.pad(x[hop:], (0, min(hop, x.numel())))
    inside = torch.arange(x.numel(), device=x.device) + hop < ends
    return torch.where(inside, shifted, torch.zeros_like(x))
