"""The weights of decoupled PPO, for samples drawn from older weights than those that they train."""

import torch

CAP = 2.0
"""c below: a token that the policy has come to like more than twice as much counts as twice."""


def behavior_weights(proximal: torch.Tensor, behavior: torch.Tensor, cap: float = CAP) -> torch.Tensor:
    """min(c, pi_prox / mu) of each token; all are [T], log-probabilities in nats, the result has no gradient.

    Decoupled PPO (AReaL, https://arxiv.org/abs/2505.24298, after https://arxiv.org/abs/2110.00641) bounds the update
    around the proximal policy pi_prox, which is the one before the step's first update, and corrects for the behavior
    policy mu, which drew the samples:

        u_t  = pi(a_t) / pi_prox(a_t)
        loss = - sum_t min(c, pi_prox(a_t) / mu(a_t)) min(u_t A_t, clip(u_t, 1 - clip_low, 1 + clip_high) A_t)

    The weight is truncated at c, which bounds the variance (truncated importance sampling, Ionides 2008,
    https://doi.org/10.1198/106186008X320456); AReaL's equation is the limit of a large c. Since no weight is negative
    and every clipped surrogate is homogeneous in the advantage, weight times surrogate is the surrogate of weight times
    advantage, and that is how the weight is applied.
    """
    with torch.no_grad():
        return (proximal - behavior).exp().clamp(max=cap)
