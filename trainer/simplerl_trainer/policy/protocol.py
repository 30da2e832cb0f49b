"""What the driver and the training ranks exchange: ids, token ids, scores and sums; never per-token floats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from simplerl_api.residence import Sharding
from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.training import Precision, Training, ZeroStage

StepPlan = tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
"""[optimizer batch][rank][pack] → sample ids. Every rank has the same number of packs in a batch; some may be empty."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A scored sample as a rank needs it."""

    sample_id: int
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    score: float
    logprobs: tuple[float, ...] | None
    """The engine's log-probabilities, where the sample is on the probe; all samples are, where ranks are decoupled."""
    group: int
    """The samples of one prompt have the same."""
    texts: tuple[tuple[int, ...], ...] = ()
    """Question and response as each reward model reads them; empty where it cannot."""


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """Estimates for simplerl_api.residence.reside."""

    shardings: Sequence[Sharding]
    """Those that may be chosen, the least first."""
    engines_share: float
    """Share of the rank's GPU that engines on it take while they roll out."""


@dataclass(frozen=True, slots=True)
class JudgeSetup:
    """A reward model that the ranks run."""

    name: str
    """Of the reward, in the spec."""
    folder: str
    """A Hugging Face folder on the rank's node."""
    field: str
    """Where the spec names it."""
    weight: float
    failed: float
    """Score of a text that it cannot score."""


@dataclass(frozen=True, slots=True)
class RankSetup:
    """What a rank needs to start."""

    rank: int
    world_size: int
    master_address: str
    master_port: int
    model_folder: str
    """A Hugging Face folder on the rank's node: start of actor, critic and reference."""
    algorithm: Algorithm
    training: Training
    zero_stage: ZeroStage
    """What the ranks share out, where no estimate of memory says it."""
    precision: Precision
    temperature: float
    optimizer_steps_per_step: int
    """Of a whole step, for the schedules; fewer are taken where samples are left out."""
    max_tokens: int
    """Longest prompt and response."""
    max_new_tokens: int
    """Longest response."""
    cpu_only: bool
    timeout: float
    """Seconds that a collective may take."""
    decoupled: bool = False
    """Whether samples may come from older weights than those that they train (rollout.overlap OneStep)."""
    vocabulary: int | None = None
    """Ids that may be sampled, from 0; the embedding's further rows have no probability. None: all rows."""
    judges: tuple[JudgeSetup, ...] = ()
    """The reward models."""
    judge_tokens: int = 32768
    """Tokens of one pass of a reward model."""
    memory: MemoryNeeds | None = None
    """What the estimate says, from which a rank on a GPU chooses; None on CPU."""
    gpu_bytes: int | None = None
    """Memory of a GPU to reckon with; None: what the device says."""


@dataclass(frozen=True, slots=True)
class RankWork:
    """One rank's part of a step."""

    batches: Sequence[Sequence[Sequence[Trajectory]]]
    """[optimizer batch][pack] → trajectories"""
    step: int
    """Number of the step, from 1."""
    kl_coefficient: float
    """Weight of the KL term in this step."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Sums over one step's valid (response) tokens of all ranks, after advantages were computed; same on every rank."""

    metrics: dict[str, float]
    """kl, entropy, advantages' mean and std before whitening, with a critic values' and returns' mean and explained
    variance, mismatch (greatest and mean |log-prob of engine - log-prob of rank| on the probe, nan without one); where
    ranks are decoupled in its place behavior_weight_mean and behavior_weight_capped (share of tokens at the cap)."""
    advantages: dict[int, float]
    """Each sample's advantage by its id: the mean over its tokens, after whitening."""
    judged: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    """Unweighted scores of the rank's own samples by each reward model; nan where one could not score."""


@dataclass(frozen=True, slots=True)
class Update:
    """One optimizer step of actor and critic; same on every rank."""

    metrics: dict[str, float]
    """policy_loss, value_loss, kl_loss, entropy_bonus, clip_fraction, ratio_max, ratio_first_deviation, policy_shift,
    grad norms, learning rates: those of what learned."""
    skipped: bool
    """Whether gradients were not finite, so that the weights of actor and critic stayed as they were."""
