"""The annotation of a step: what the models say of its samples, and what is to be learned from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from simplerl_api.spec.algorithm import Algorithm
from simplerl_trainer.algorithms.aggregation import token_weights
from simplerl_trainer.algorithms.whitening import whiten
from simplerl_trainer.policy import group, step_metrics
from simplerl_trainer.policy.advantages import advantages, are_whitened
from simplerl_trainer.policy.experience import Experience, observe
from simplerl_trainer.policy.packing import Pack
from simplerl_trainer.policy.protocol import Annotation
from simplerl_trainer.policy.sample_table import gather_samples, sample_means


@dataclass(frozen=True, slots=True)
class Annotated:
    """A step that can be trained on; per-token tensors stay on the rank that made them."""

    batches: Sequence[Sequence[Experience]]
    """[optimizer batch][pack] of this rank."""
    tokens: Sequence[float]
    """Response tokens of each optimizer batch on all ranks."""
    annotation: Annotation


def annotate(
    batches: Sequence[Sequence[Pack]],
    actor: Callable[..., Any],
    reference: Callable[..., Any] | None,
    critic: Callable[..., Any] | None,
    algorithm: Algorithm,
    *,
    temperature: float,
    kl_coefficient: float,
    max_new_tokens: int,
    decoupled: bool,
    device: torch.device,
) -> Annotated:
    """Annotates this rank's packs, [optimizer batch][pack], of a step. Collective.

    Raises ValueError where no rank has a sample.
    """
    packs = [pack for batch in batches for pack in batch]
    observed = observe(packs, actor, reference, critic, temperature, algorithm.kl_estimator, decoupled=decoupled)
    table = gather_samples(packs, [o.kl for o in observed], device)
    of_pack = advantages(table, algorithm, kl_coefficient)
    made, returns = zip(*[of_pack(o) for o in observed], strict=True)
    sums, maxima = step_metrics.totals(observed, made, returns, has_critic=critic is not None)
    for i, batch in enumerate(batches):
        sums[f"tokens.{i}"] = float(sum(p.tokens for p in batch))
        sums[f"samples.{i}"] = float(sum(len(p.sample_ids) for p in batch))
    sums, maxima = group.sums(sums, device), group.maxima(maxima, device)
    if are_whitened(algorithm):
        over = step_metrics.moments_of(sums, "advantage")
        made = tuple(whiten(a, over) for a in made)
    numbers = [i for i, batch in enumerate(batches) for _ in batch]
    experience = [
        Experience(
            o,
            advantage,
            returned,
            token_weights(
                o.pack.response_lengths,
                algorithm.loss.aggregation,
                tokens=sums[f"tokens.{i}"],
                samples=sums[f"samples.{i}"],
                longest=max_new_tokens,
                like=o.logprobs,
            ),
        )
        for i, o, advantage, returned in zip(numbers, observed, made, returns, strict=True)
    ]
    metrics = step_metrics.metrics(sums, maxima, has_reference=reference is not None, has_critic=critic is not None)
    if reference is not None:
        metrics["kl_coefficient"] = kl_coefficient
    return Annotated(
        batches=[
            [e for e, number in zip(experience, numbers, strict=True) if number == i] for i in range(len(batches))
        ],
        tokens=[sums[f"tokens.{i}"] for i in range(len(batches))],
        annotation=Annotation(metrics, sample_means(table, packs, made)),
    )
