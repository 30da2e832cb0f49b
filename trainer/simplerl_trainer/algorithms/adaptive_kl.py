"""The KL coefficient that follows a target (https://arxiv.org/abs/1909.08593, section 2.2)."""

from math import isfinite

MOST = 0.2
"""Greatest relative error that is acted on."""


def adapted(coefficient: float, kl: float, target: float, horizon: int, samples: int) -> float:
    """The coefficient after a step of `samples` samples whose mean KL was `kl`, both KL in nats per token:

        e     = clip((kl - target) / target, -0.2, 0.2)
        beta' = beta (1 + e samples / horizon)

    The paper's K_beta of 0.1 a batch is samples / horizon here. A KL that is not finite changes nothing, and a step of
    more than 5 horizons leaves the coefficient above 0.
    """
    if not isfinite(kl):
        return coefficient
    error = min(max((kl - target) / target, -MOST), MOST)
    return coefficient * max(1 + error * samples / horizon, MOST)
