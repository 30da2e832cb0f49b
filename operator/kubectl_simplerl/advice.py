"""What the newest steps' seconds and figures advise: at most two sentences, the gravest first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplerl_api.plan import PlacementKind

MOST = 2
"""More than two changes at once and nobody knows which of them helped."""
_DOMINATES = 0.5
"""A part with half of the step: at most a part's own share can be won, so only such a part is worth a change."""
_SIDE = 0.2
"""Sync and evaluation train nothing: a fifth of all GPU time is more than they should cost."""
_LOPSIDED = 2.0
"""Rollout this many times training: the ranks' GPUs idle for more than half of the time."""
_MISMATCH = 0.05
"""Nats a token. Rounding in bf16 leaves a hundredth; five times that is another model or another temperature."""
_TRUNCATED = 0.2
"""One response in five without its end has no right answer to be paid for, whatever it was going to say."""
_FLAT = 0.5
"""Half of the groups teach nothing: half of the rollout's time is spent for no gradient."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job that trains."""

    split: Mapping[str, float]
    """Mean seconds of the newest steps by part, and `total`."""
    metrics: Mapping[str, float]
    spec: Mapping[str, Any]
    plan: Mapping[str, Any]

    def share(self, part: str) -> float:
        total = self.split.get("total") or sum(self.split.values())
        return self.split.get(part, 0.0) / total if total else 0.0

    @property
    def training(self) -> float:
        return self.split.get("annotate", 0.0) + self.split.get("update", 0.0)

    def section(self, *path: str) -> Any:
        found: Any = self.spec
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found


def sentences(case: Case) -> list[str]:
    """The advice."""
    found: Iterator[str | None] = (rule(case) for rule in _RULES)
    return [sentence for sentence in found if sentence][:MOST]


def _engines_lost(case: Case) -> str | None:
    lost = case.metrics.get("engines_lost", 0)
    if not lost:
        return None
    return (
        f"engines_lost is {lost:g}: the log's lines 'engine lost' say why; where it was memory, lower "
        "rollout.gpuMemoryUtilization"
    )


def _mismatch(case: Case) -> str | None:
    mean = case.metrics.get("mismatch_mean", 0)
    if mean <= _MISMATCH:
        return None
    return (
        f"mismatch_mean is {mean:.2g}, over {_MISMATCH:g} nats a token: engines and ranks do not compute one model; "
        "compare rollout's and training's precision"
    )


def _rollout(case: Case) -> str | None:
    share = case.share("rollout")
    if share < _DOMINATES:
        return None
    head = f"rollout takes {share:.0%} of a step: "
    if case.plan.get("placement") == PlacementKind.DISAGGREGATED:
        if case.split["rollout"] < _LOPSIDED * case.training:
            return None
        if case.section("rollout", "overlap") != "OneStep" and not case.section("training", "deterministic"):
            return head + "set rollout.overlap to OneStep, which draws the next step's samples while this one trains"
        if (ranks := case.plan.get("ranks", 1)) > 1:
            return head + f"lower placement.disaggregated.trainingGpus, now {ranks}, so that more GPUs roll out"
        return None
    slots = case.plan.get("gpus", 0) // case.plan.get("tensorParallelSize", 1)
    on_gpus = not case.section("cluster", "cpuOnly")
    if on_gpus and case.plan.get("tensorParallelSize", 1) == 1 and case.plan.get("engines") == slots:
        return head + "one engine a GPU; where the model is small, set rollout.enginesPerGpu to 2"
    return None


def _update(case: Case) -> str | None:
    share = case.share("update")
    if share < _DOMINATES:
        return None
    offload = case.section("training", "offload") or {}
    spent = [f"training.offload.{name}" for name in ("parameters", "optimizer") if offload.get(name)]
    spent += ["training.gradientCheckpointing"] if case.section("training", "gradientCheckpointing") else []
    if not spent:
        return None
    return f"update takes {share:.0%} of a step: set {' and '.join(spent)} to false, as far as memory allows"


def _sync(case: Case) -> str | None:
    share = case.share("sync")
    if share <= _SIDE:
        return None
    return f"sync takes {share:.0%} of a step: raise rollout.promptsPerStep, so that one sync serves more samples"


def _evaluate(case: Case) -> str | None:
    share = case.share("evaluate")
    if share <= _SIDE:
        return None
    return f"evaluate takes {share:.0%} of a step: raise evaluation.everySteps"


def _truncated(case: Case) -> str | None:
    share = case.metrics.get("truncated", 0)
    if share < _TRUNCATED:
        return None
    return f"truncated is {share:.0%}: raise rollout.sampling.maxNewTokens, or set algorithm.overlong"


def _flat(case: Case) -> str | None:
    share = case.metrics.get("zero_variance_groups", 0)
    # one sample a prompt is a group without variance by itself
    samples = case.section("rollout", "samplesPerPrompt")
    if share < _FLAT or samples == 1 or case.section("algorithm", "dynamicSampling") is not None:
        return None
    return (
        f"zero_variance_groups is {share:.0%}: set "
        "algorithm.dynamicSampling, or take prompts that are neither too easy nor too hard"
    )


_RULES: Sequence[Callable[[Case], str | None]] = (
    _engines_lost, _mismatch, _rollout, _update, _sync, _evaluate, _truncated, _flat,
)  # fmt: skip
