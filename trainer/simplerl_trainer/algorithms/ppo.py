"""PPO with a critic (https://arxiv.org/abs/1707.06347): a token's advantage is estimated from the critic's values.

    r_t = [t is the response's last token] score - beta kl_t          (algorithms/rewards.py)
    A_t = sum_k (gamma lambda)^k delta_t+k                            (algorithms/gae.py)

The policy learns by the clipped surrogate (algorithms/surrogate.py), the critic by the clipped value loss below.
"""

import torch


def value_loss(
    values: torch.Tensor, old_values: torch.Tensor, returns: torch.Tensor, value_clip: float
) -> torch.Tensor:
    """The value loss of each token, clipped as in PPO's reference implementation (https://github.com/openai/baselines,
    ppo2):

        V'_t = old_t + clip(V_t - old_t, -value_clip, value_clip)
        l_t  = 1/2 max((V_t - R_t)^2, (V'_t - R_t)^2)

    All arguments and the result are [T].
    """
    bounded = old_values + (values - old_values).clamp(-value_clip, value_clip)
    return 0.5 * torch.maximum((values - returns).square(), (bounded - returns).square())
