"""Estimators of KL(policy || reference) at sampled tokens (http://joschu.net/blog/kl-approx.html)."""

import torch


def kl(logprobs: torch.Tensor, reference: torch.Tensor, estimator: str) -> torch.Tensor:
    """The estimate at each token; both tensors and the result are [T], in nats. With d = logprobs - reference:

    K1: d               unbiased
    K2: d^2 / 2         biased, of smaller variance, never negative
    K3: exp(-d) - 1 + d unbiased, never negative

    Raises ValueError for another estimator.
    """
    d = logprobs - reference
    match estimator:
        case "K1":
            return d
        case "K2":
            return 0.5 * d.square()
        case "K3":
            return (-d).exp() - 1 + d
    raise ValueError(f"the KL estimator is {estimator}: use K1, K2 or K3")
