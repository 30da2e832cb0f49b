"""Advantages of the tokens of a step, by the algorithm that the job names."""

from collections.abc import Callable

import torch

from simplerl_api.spec.algorithm import Algorithm, Grpo, KlPlacement, Ppo, ReinforcePlusPlus, Rloo
from simplerl_trainer.algorithms import grpo, reinforce_plus_plus, rloo
from simplerl_trainer.algorithms.gae import gae
from simplerl_trainer.algorithms.rewards import token_rewards
from simplerl_trainer.policy.experience import Observed
from simplerl_trainer.policy.sample_table import SampleTable

Advantages = Callable[[Observed], tuple[torch.Tensor, torch.Tensor | None]]
"""Advantages [R] of a pack's tokens before whitening, and returns [R] where there is a critic."""


def advantages(table: SampleTable, algorithm: Algorithm, kl_coefficient: float) -> Advantages:
    """The function that gives each pack's advantages, from the samples of the whole step.

    Scores are clipped first where algorithm.rewardClip says so. Where the KL term acts on rewards, ppo and
    reinforcePlusPlus take it from each token's reward, grpo and rloo its sum from the response's score.
    """
    clip = algorithm.reward_clip
    scores = table.scores if clip is None else table.scores.clamp(-clip, clip)
    in_reward = algorithm.kl_placement is KlPlacement.REWARD

    def rewards_of(o: Observed, scores: torch.Tensor) -> torch.Tensor:
        given = scores[table.places(o.pack)].to(o.logprobs.dtype)
        return token_rewards(given, o.pack.response_lengths, o.kl if in_reward else None, kl_coefficient)

    def spread(o: Observed, per_sample: torch.Tensor) -> torch.Tensor:
        lengths = torch.tensor(o.pack.response_lengths, dtype=torch.int64, device=per_sample.device)
        return torch.repeat_interleave(per_sample[table.places(o.pack)].to(o.logprobs.dtype), lengths)

    match algorithm.chosen():
        case Ppo() as ppo:

            def of_ppo(o: Observed) -> tuple[torch.Tensor, torch.Tensor | None]:
                assert o.values is not None, "ppo has a critic"
                return gae(rewards_of(o, scores), o.values, o.pack.response_lengths, ppo.gamma, ppo.gae_lambda)

            return of_ppo
        case Grpo() as settings:
            rewards = scores - kl_coefficient * table.kl if in_reward else scores
            each = grpo.advantages(rewards, table.groups, settings.normalize_by_std)
            return lambda o: (spread(o, each), None)
        case Rloo():
            rewards = scores - kl_coefficient * table.kl if in_reward else scores
            each = rloo.advantages(rewards, table.groups)
            return lambda o: (spread(o, each), None)
        case ReinforcePlusPlus() as settings:
            if settings.group_baseline:
                scores = reinforce_plus_plus.less_baseline(scores, table.groups)
            return lambda o: (
                reinforce_plus_plus.returns(rewards_of(o, scores), o.pack.response_lengths, settings.gamma),
                None,
            )


def are_whitened(algorithm: Algorithm) -> bool:
    """Whether advantages are brought to mean 0 and standard deviation 1 over all tokens of the step."""
    match algorithm.chosen():
        case Ppo() as ppo:
            return ppo.whiten
        case ReinforcePlusPlus():
            return True
        case _:
            return False
