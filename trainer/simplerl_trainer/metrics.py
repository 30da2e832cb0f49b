"""The metrics of a step that the driver knows: rewards, lengths, speed."""

import math
from collections.abc import Mapping, Sequence

from simplerl_trainer.policy.protocol import Annotation, Update
from simplerl_trainer.samples import Finish, Sample, Score


def of_samples(samples: Sequence[Sample], scores: Mapping[int, Score], samples_per_prompt: int) -> dict[str, float]:
    """Reward, accuracy and lengths of a step's samples.

    `zero_variance_groups` is the share of prompts all of whose responses have one score: they teach GRPO nothing.
    """
    values = [scores[s.id].value for s in samples]
    groups: dict[int, set[float]] = {}
    for sample, value in zip(samples, values, strict=True):
        groups.setdefault(sample.id // samples_per_prompt, set()).add(value)
    count = len(samples)
    mean = sum(values) / count
    out = {
        "reward": mean,
        "reward_std": math.sqrt(sum((v - mean) ** 2 for v in values) / count),
        "accuracy": sum(scores[s.id].verdict == "equal" for s in samples) / count,
        "response_length": sum(len(s.response_ids) for s in samples) / count,
        "response_length_max": float(max(len(s.response_ids) for s in samples)),
        "prompt_length": sum(len(s.prompt.token_ids) for s in samples) / count,
        "truncated": sum(s.finish is Finish.LENGTH for s in samples) / count,
        "zero_variance_groups": sum(len(g) == 1 for g in groups.values()) / len(groups),
        "scoring_failures": float(sum(scores[s.id].verdict in ("failed", "timeout") for s in samples)),
    }
    for name in scores[samples[0].id].parts:
        out[f"reward_{name}"] = sum(scores[s.id].parts[name] for s in samples) / count
    return out


def of_updates(updates: Sequence[Update]) -> dict[str, float]:
    """Means over a step's optimizer steps that have a metric; the greatest for names that end in `_max`."""
    out: dict[str, float] = {}
    for name in sorted({n for u in updates for n in u.metrics}):
        values = [u.metrics[name] for u in updates if name in u.metrics]
        out[name] = max(values) if name.endswith("_max") else sum(values) / len(values)
    return out | {"skipped_updates": float(sum(u.skipped for u in updates))}


def of_step(
    samples: Sequence[Sample],
    scores: Mapping[int, Score],
    samples_per_prompt: int,
    annotation: Annotation,
    updates: Sequence[Update],
) -> dict[str, float]:
    """All metrics of a step by name."""
    return of_samples(samples, scores, samples_per_prompt) | annotation.metrics | of_updates(updates)
