"""How the policy is improved."""

from enum import StrEnum

from pydantic import Field

from simplerl_api.spec.dynamic_sampling import DynamicSampling
from simplerl_api.struct import Struct


class Ppo(Struct):
    """Proximal policy optimization with a critic (https://arxiv.org/abs/1707.06347) and generalized advantage
    estimation (https://arxiv.org/abs/1506.02438)."""

    clip_low: float = Field(default=0.2, ge=0, lt=1)
    """The ratio of new to old probability is clipped below at 1 - clipLow."""
    clip_high: float = Field(default=0.2, ge=0, le=100)
    """The ratio of new to old probability is clipped above at 1 + clipHigh."""
    value_clip: float = Field(default=0.2, gt=0, le=1000)
    """A new value may move from the old one by this much before its loss is clipped."""
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per token."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Lambda of generalized advantage estimation."""
    epochs: int = Field(default=1, ge=1, le=64)
    """Passes over the samples of a step."""


class KlPlacement(StrEnum):
    """Where the KL term acts."""

    REWARD = "Reward"
    LOSS = "Loss"


class KlEstimator(StrEnum):
    """Estimators of KL(policy || reference) at a sampled token (http://joschu.net/blog/kl-approx.html)."""

    K1 = "K1"
    K2 = "K2"
    K3 = "K3"


class Kl(Struct):
    """The pull towards the reference model: the model as it was before training."""

    coefficient: float = Field(default=0.01, ge=0, le=100)
    """Weight of the KL term; 0 leaves the reference model out."""
    placement: KlPlacement = KlPlacement.REWARD
    """Reward: taken from each token's reward. Loss: added to the loss."""
    estimator: KlEstimator = KlEstimator.K1
    """K1: log-ratio. K2: half its square. K3: ratio - 1 - log-ratio."""


class Algorithm(Struct):
    """The algorithm: ppo, which is also the choice where none is named."""

    ppo: Ppo | None = None
    """Proximal policy optimization with a critic."""
    kl: Kl = Field(default_factory=Kl)
    """The pull towards the reference model."""
    dynamic_sampling: DynamicSampling | None = None
    """Replaces groups whose samples all have the same score. Absent: every group trains."""

    def chosen(self) -> Ppo:
        """The algorithm's settings, the documented defaults where it is absent."""
        return self.ppo or Ppo()
