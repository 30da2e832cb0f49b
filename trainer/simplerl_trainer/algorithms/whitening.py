"""Whitening by sums, so that the tokens of all ranks count alike wherever they lie."""

from dataclasses import dataclass
from math import sqrt

import torch


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over tokens; those of two ranks add up."""

    count: float
    total: float
    squares: float

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """Population variance: E[x^2] - E[x]^2, never negative."""
        return max(self.squares / self.count - self.mean**2, 0.0) if self.count else 0.0

    @property
    def std(self) -> float:
        return sqrt(self.variance)


def moments(x: torch.Tensor) -> torch.Tensor:
    """[count, sum, sum of squares] of x, in float64, ready to be summed over ranks and read as Moments."""
    x = x.double()
    return torch.stack((x.new_tensor(float(x.numel())), x.sum(), x.square().sum()))


def whiten(x: torch.Tensor, over: Moments, epsilon: float = 1e-8) -> torch.Tensor:
    """(x - mean) / (std + epsilon): all zeros where every token has the same value."""
    return (x - over.mean) / (over.std + epsilon)
