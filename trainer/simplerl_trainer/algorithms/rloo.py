"""REINFORCE with a leave-one-out baseline (https://arxiv.org/abs/2402.14740)."""

import torch

from simplerl_trainer.algorithms import groups as group


def advantages(rewards: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """The advantage of every token of each sample (the paper's section on RLOO) over the k samples of a prompt:

        A_i = r_i - 1/(k - 1) sum_{j != i} r_j  =  k/(k - 1) (r_i - mean(r_1 … r_k))

    `rewards` [n] and `groups` [n] int64 hold all samples of a step; returns [n]. A group of one sample has no baseline
    and gives 0.
    """
    k = group.sizes(groups).to(rewards.dtype)
    return (rewards - group.means(rewards, groups)) * k / (k - 1).clamp(min=1)
