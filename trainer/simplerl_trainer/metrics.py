"""The metrics of a step that the driver knows: rewards, lengths, speed."""

import math
from collections.abc import Sequence

from simplerl_trainer.batch import Batch
from simplerl_trainer.policy.protocol import Annotation, Update
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.samples import Finish


def of_samples(scored: Sequence[Scored], samples_per_prompt: int) -> dict[str, float]:
    """Reward, accuracy and lengths of a step's samples, at least one: of all that were drawn, whichever train.

    `zero_variance_groups` is the share of prompts all of whose responses have one score: they teach GRPO nothing.
    """
    samples, scores = [s.sample for s in scored], [s.score for s in scored]
    values = [s.value for s in scores]
    groups: dict[int, set[float]] = {}
    for sample, value in zip(samples, values, strict=True):
        groups.setdefault(sample.id // samples_per_prompt, set()).add(value)
    count = len(samples)
    mean = sum(values) / count
    out = {
        "reward": mean,
        "reward_std": math.sqrt(sum((v - mean) ** 2 for v in values) / count),
        "accuracy": sum(s.verdict == "equal" for s in scores) / count,
        "response_length": sum(len(s.response_ids) for s in samples) / count,
        "response_length_max": float(max(len(s.response_ids) for s in samples)),
        "prompt_length": sum(len(s.prompt.token_ids) for s in samples) / count,
        "truncated": sum(s.finish is Finish.LENGTH for s in samples) / count,
        "zero_variance_groups": sum(len(g) == 1 for g in groups.values()) / len(groups),
        "scoring_failures": float(sum(bool(s.failed) for s in scores)),
    }
    for name in scores[0].parts:
        out[f"reward_{name}"] = sum(s.parts[name] for s in scores) / count
        out[f"scoring_failures_{name}"] = float(sum(name in s.failed for s in scores))
    return out


def of_updates(updates: Sequence[Update]) -> dict[str, float]:
    """Means over a step's optimizer steps that have a metric; the greatest for names that end in `_max`."""
    out: dict[str, float] = {}
    for name in sorted({n for u in updates for n in u.metrics}):
        values = [u.metrics[name] for u in updates if name in u.metrics]
        out[name] = max(values) if name.endswith("_max") else sum(values) / len(values)
    return out | {"skipped_updates": float(sum(u.skipped for u in updates))}


def of_step(
    batch: Batch, samples_per_prompt: int, annotation: Annotation | None, updates: Sequence[Update]
) -> dict[str, float]:
    """All metrics of a step by name; those of annotation and updates are missing where nothing was trained."""
    found = of_samples(batch.drawn, samples_per_prompt) | batch.figures | of_updates(updates)
    if annotation is not None:
        # dynamic sampling may have dropped the probe: then there is nothing to compare
        probed = any(s.sample.logprobs is not None for s in batch.trained)
        found |= {k: v for k, v in annotation.metrics.items() if probed or not k.startswith("mismatch_")}
    return found
