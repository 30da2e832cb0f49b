"""REINFORCE++ (https://arxiv.org/abs/2501.03262): no critic and no groups; advantages are whitened over the step.

    r_t = [t is the response's last token] score - beta kl_t          (algorithms/rewards.py)
    A_t = sum_{k >= t} gamma^(k - t) r_k

and then (A - mean(A)) / std(A) over all tokens of the step (algorithms/whitening.py). REINFORCE++-baseline takes the
mean score of the prompt's samples from each score first.
"""

from collections.abc import Sequence

import torch

from simplerl_trainer.algorithms import groups as group
from simplerl_trainer.algorithms.gae import gae


def returns(rewards: torch.Tensor, lengths: Sequence[int], gamma: float) -> torch.Tensor:
    """A_t before whitening; `rewards` is flat [T], as is the result, `lengths` are the responses' token counts."""
    return gae(rewards, torch.zeros_like(rewards), lengths, gamma, gae_lambda=1.0)[0]


def less_baseline(scores: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Each score less the mean of its group; `scores` [n] and `groups` [n] int64 hold all samples of a step."""
    return scores - group.means(scores, groups)
