"""Group relative policy optimization (DeepSeekMath, https://arxiv.org/abs/2402.03300)."""

import torch

from simplerl_trainer.algorithms import groups as group

EPSILON = 1e-6


def advantages(rewards: torch.Tensor, groups: torch.Tensor, normalize_by_std: bool) -> torch.Tensor:
    """The advantage of every token of each sample, section 4.1.2 of the paper, over the G samples of a prompt:

        A_i = (r_i - mean(r_1 … r_G)) / (std(r_1 … r_G) + 1e-6)

    with G - 1 in the standard deviation, or without the division (Dr.GRPO, https://arxiv.org/abs/2503.20783).

    `rewards` [n] and `groups` [n] int64 hold all samples of a step; returns [n]. A group whose rewards are equal, or
    of one sample, gives 0.
    """
    centred = rewards - group.means(rewards, groups)
    return centred / (group.deviations(rewards, groups) + EPSILON) if normalize_by_std else centred
