"""How the policy is improved."""

from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, model_validator

from simplerl_api.spec.dynamic_sampling import DynamicSampling
from simplerl_api.struct import Struct, Union


class Ppo(Struct):
    """Proximal policy optimization with a critic (https://arxiv.org/abs/1707.06347) and generalized advantage
    estimation (https://arxiv.org/abs/1506.02438)."""

    clip_low: float = Field(default=0.2, ge=0, lt=1)
    """The ratio of new to old probability is clipped below at 1 - clipLow. Absent: 0.2."""
    clip_high: float = Field(default=0.2, ge=0, le=100)
    """The ratio of new to old probability is clipped above at 1 + clipHigh. Absent: 0.2."""
    value_clip: float = Field(default=0.2, gt=0, le=1000)
    """A new value may move from the old one by this much before its loss is clipped. Absent: 0.2."""
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per token. Absent: 1."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Lambda of generalized advantage estimation. Absent: 0.95."""
    epochs: int = Field(default=1, ge=1, le=64)
    """Passes over the samples of a step. Absent: 1."""
    whiten: bool = True
    """Whether advantages are brought to mean 0 and standard deviation 1 over all tokens of the step. Absent: true."""


class Grpo(Struct):
    """Group relative policy optimization (https://arxiv.org/abs/2402.03300): no critic; a sample's advantage is its
    reward against those of the other samples of its prompt."""

    clip_low: float = Field(default=0.2, ge=0, lt=1)
    """The ratio of new to old probability is clipped below at 1 - clipLow. Absent: 0.2."""
    clip_high: float = Field(default=0.2, ge=0, le=100)
    """The ratio of new to old probability is clipped above at 1 + clipHigh; DAPO's clip-higher is 0.28. Absent: 0.2."""
    epochs: int = Field(default=1, ge=1, le=64)
    """Passes over the samples of a step. Absent: 1."""
    normalize_by_std: bool = True
    """Whether a group's advantages are divided by the standard deviation of its rewards; false, with loss.aggregation
    Constant, is Dr.GRPO (https://arxiv.org/abs/2503.20783). Absent: true."""


class Rloo(Struct):
    """REINFORCE with a leave-one-out baseline (https://arxiv.org/abs/2402.14740): no critic; a sample's advantage is
    its reward less the mean reward of the other samples of its prompt."""

    clip_low: float = Field(default=0.2, ge=0, lt=1)
    """The ratio of new to old probability is clipped below at 1 - clipLow. Absent: 0.2."""
    clip_high: float = Field(default=0.2, ge=0, le=100)
    """The ratio of new to old probability is clipped above at 1 + clipHigh. Absent: 0.2."""
    epochs: int = Field(default=1, ge=1, le=64)
    """Passes over the samples of a step. Absent: 1."""


class ReinforcePlusPlus(Struct):
    """REINFORCE++ (https://arxiv.org/abs/2501.03262): no critic; a token's advantage is the reward that follows it,
    whitened over all tokens of the step."""

    clip_low: float = Field(default=0.2, ge=0, lt=1)
    """The ratio of new to old probability is clipped below at 1 - clipLow. Absent: 0.2."""
    clip_high: float = Field(default=0.2, ge=0, le=100)
    """The ratio of new to old probability is clipped above at 1 + clipHigh. Absent: 0.2."""
    epochs: int = Field(default=1, ge=1, le=64)
    """Passes over the samples of a step. Absent: 1."""
    gamma: float = Field(default=1.0, ge=0, le=1)
    """Discount per token. Absent: 1."""
    group_baseline: bool = False
    """Whether the mean score of a prompt's samples is taken from each of their scores first. Absent: false."""


class KlPlacement(StrEnum):
    """Where the KL term acts."""

    REWARD = "Reward"
    LOSS = "Loss"


class KlEstimator(StrEnum):
    """Estimators of KL(policy || reference) at a sampled token (http://joschu.net/blog/kl-approx.html)."""

    K1 = "K1"
    K2 = "K2"
    K3 = "K3"


class AdaptiveKl(Struct):
    """The coefficient is moved after each step so that the KL comes to a target (https://arxiv.org/abs/1909.08593,
    section 2.2)."""

    target: float = Field(gt=0, le=1000)
    """KL aimed at, in nats per response token as the metric `kl` has it, for example 0.01."""
    horizon: int = Field(ge=1, le=1_000_000_000)
    """Samples over which the coefficient grows or falls by at most a fifth, for example 10000."""


ADAPTIVE_RULE = "algorithm.kl.adaptive needs a coefficient above 0 to start from: set algorithm.kl.coefficient"


class Kl(Struct):
    """The pull towards the reference model: the model as it was before training."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (("!has(self.adaptive) || self.coefficient > 0.0", ADAPTIVE_RULE),)

    coefficient: float = Field(default=0.01, ge=0, le=100)
    """Weight of the KL term, where it starts if adaptive; 0 leaves the reference model out."""
    placement: KlPlacement | None = None
    """Reward: taken from the rewards. Loss: added to the loss. Absent: Loss for grpo, Reward for the others."""
    estimator: KlEstimator | None = None
    """With d the log-ratio of policy to reference, K1: d. K2: half its square. K3: exp(-d) - 1 + d. Absent: K3 for
    grpo, K1 for the others. In the loss the gradient of K1 is 0 in the mean: it pulls nowhere, take K2 or K3."""
    adaptive: AdaptiveKl | None = None
    """Moves the coefficient so that the KL comes to a target. Absent: it stays."""

    @model_validator(mode="after")
    def _adaptive_from_something(self) -> Self:
        if self.adaptive is not None and self.coefficient == 0:
            raise ValueError(ADAPTIVE_RULE)
        return self


class Aggregation(StrEnum):
    """How the terms of single tokens make one loss."""

    TOKEN = "Token"
    SEQUENCE = "Sequence"
    CONSTANT = "Constant"


class Loss(Struct):
    """The policy's loss."""

    aggregation: Aggregation = Aggregation.TOKEN
    """Over each optimizer step's samples, Token: mean over all response tokens. Sequence: mean over each response's
    tokens, then over responses. Constant: sum divided by samples x maxNewTokens (Dr.GRPO). The critic's loss is a mean
    over tokens in each case."""
    dual_clip: float | None = Field(default=None, gt=1, le=1000)
    """Where the advantage is negative, a token's term is at most this many times it, however large the ratio
    (https://arxiv.org/abs/1912.09729), for example 3. Absent: no such bound."""
    entropy_coefficient: float = Field(default=0.0, ge=0, le=100)
    """Weight of the entropy bonus, nats."""


OVERLONG = "overlong"
"""Name of the penalty for long responses among the parts of a score."""


class Overlong(Struct):
    """DAPO's soft penalty for long responses (https://arxiv.org/abs/2503.14476, equation 13)."""

    buffer_tokens: int = Field(ge=1, le=1_000_000)
    """The penalty grows over the last so many tokens before maxNewTokens."""
    penalty: float = Field(default=1.0, gt=0, le=1000)
    """Taken from the score of a response of maxNewTokens. Absent: 1."""


class Algorithm(Union):
    """The algorithm, at most one of ppo, grpo, rloo, reinforcePlusPlus, with options of any of them. None of them: ppo
    with its defaults."""

    members = ("ppo", "grpo", "rloo", "reinforcePlusPlus")
    none_allowed = True

    ppo: Ppo | None = None
    """Proximal policy optimization with a critic."""
    grpo: Grpo | None = None
    """Group relative policy optimization; with normalizeByStd false, Dr.GRPO."""
    rloo: Rloo | None = None
    """REINFORCE with a leave-one-out baseline."""
    reinforce_plus_plus: ReinforcePlusPlus | None = None
    """REINFORCE++, or with groupBaseline REINFORCE++-baseline."""
    kl: Kl = Field(default_factory=Kl)
    """The pull towards the reference model."""
    dynamic_sampling: DynamicSampling | None = None
    """Replaces groups whose samples all have the same score. Absent: every group trains."""
    loss: Loss = Field(default_factory=Loss)
    """The policy's loss."""
    reward_clip: float | None = Field(default=None, gt=0, le=1_000_000)
    """Total scores are clipped to -rewardClip and rewardClip before advantages are made of them; metrics and samples
    show them as they were. Absent: no clipping."""
    overlong: Overlong | None = None
    """Soft penalty for long responses, a part of their score. Absent: none."""
    mask_truncated: bool = False
    """Whether responses that were cut at maxNewTokens are left out of the training: they give no gradient and count in
    no mean, baseline or deviation, but their reward is reported."""

    def chosen(self) -> Ppo | Grpo | Rloo | ReinforcePlusPlus:
        """The algorithm's settings, the documented defaults where none is named."""
        return self.ppo or self.grpo or self.rloo or self.reinforce_plus_plus or Ppo()

    @property
    def has_critic(self) -> bool:
        """Whether a critic is trained."""
        return isinstance(self.chosen(), Ppo)

    @property
    def has_groups(self) -> bool:
        """Whether a sample's advantage depends on the other samples of its prompt."""
        chosen = self.chosen()
        return isinstance(chosen, Grpo | Rloo) or (isinstance(chosen, ReinforcePlusPlus) and chosen.group_baseline)

    @property
    def kl_placement(self) -> KlPlacement:
        """Where the KL term acts."""
        return self.kl.placement or (KlPlacement.LOSS if self.grpo else KlPlacement.REWARD)

    @property
    def kl_estimator(self) -> KlEstimator:
        """The estimator of the KL term and of the metric `kl`."""
        return self.kl.estimator or (KlEstimator.K3 if self.grpo else KlEstimator.K1)
