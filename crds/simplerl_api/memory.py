"""How much memory a job needs on each GPU, estimated from its plan and its model's config.json. Pure functions.

What is counted are the tensors that the job's own sizes decide. What CUDA, NCCL and the allocators take for themselves
(one or two GiB a process) comes on top.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field

from simplerl_api.plan import Plan
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import Precision, ZeroStage
from simplerl_api.struct import Struct, Text

LOGITS_BYTES = 512 * 2**20
"""Bytes of float32 logits that exist at once on a rank; a response's tokens are taken in chunks of that many."""
BUCKET = 500_000_000
"""Elements of DeepSpeed's largest communication bucket, which is allocated at once."""
GIB = 2**30
USABLE = 0.92
"""Share of a GPU's memory that the estimate may fill: the rest is for CUDA, NCCL and what the allocators lose."""
_FROZEN = "frozen "


class ModelShape(Struct):
    """The numbers of a config.json that decide a model's size."""

    vocabulary: int = Field(ge=1)
    """Rows of the embedding."""
    hidden: int = Field(ge=1)
    """Size of a hidden state."""
    intermediate: int = Field(ge=1)
    """Size of the feed-forward layers."""
    layers: int = Field(ge=1)
    """Decoder layers."""
    heads: int = Field(ge=1)
    """Query heads."""
    key_value_heads: int = Field(ge=1)
    """Key and value heads."""
    head: int = Field(ge=1)
    """Size of a head."""
    tied: bool = False
    """Whether the output layer is the embedding."""
    biases: bool = False
    """Whether queries, keys and values have biases."""
    head_norms: bool = False
    """Whether queries and keys are normed."""

    @property
    def body(self) -> int:
        """Parameters without the output layer."""
        queries, keys = self.heads * self.head, self.key_value_heads * self.head
        attention = 2 * self.hidden * queries + 2 * self.hidden * keys
        attention += (queries + 2 * keys) * self.biases + 2 * self.head * self.head_norms
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        return self.vocabulary * self.hidden + self.layers * layer + self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer is counted once."""
        return self.body + (0 if self.tied else self.vocabulary * self.hidden)


def shape_of(config: Mapping[str, Any]) -> ModelShape:
    """The shape that a config.json of a supported family describes.

    Raises ValueError naming a number that it lacks.
    """

    def number(key: str, otherwise: int | None = None) -> int:
        value = config.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"config.json has {key} {value!r}: give a model folder where it is a number")
        return value

    hidden, heads = number("hidden_size"), number("num_attention_heads")
    family = config.get("model_type")
    return ModelShape(
        vocabulary=number("vocab_size"),
        hidden=hidden,
        intermediate=number("intermediate_size"),
        layers=number("num_hidden_layers"),
        heads=heads,
        key_value_heads=number("num_key_value_heads", heads),
        head=number("head_dim", max(hidden // heads, 1)),
        tied=bool(config.get("tie_word_embeddings", False)),
        biases=family == "qwen2" or bool(config.get("attention_bias", False)),
        head_norms=family == "qwen3",
    )


class Phase(StrEnum):
    """Where and when memory is held."""

    TRAINING = "Training"
    """On a GPU with a rank, while it trains."""
    ROLLOUT = "Rollout"
    """On a GPU with engines, while they roll out."""
    HOST = "Host"
    """In the machine's memory, for each rank."""


class MemoryPart(Struct):
    """One use of memory."""

    phase: Phase
    """Where and when."""
    name: Text
    """For what."""
    bytes: int = Field(ge=0)
    """How much."""


class MemoryEstimate(Struct):
    """The memory of the GPU (and of its share of the machine) that needs most."""

    parts: tuple[MemoryPart, ...]
    """Every use that is counted."""
    gradient_checkpointing: bool
    """Whether activations are recomputed: as the spec says, or as the memory needs."""

    def total(self, phase: Phase) -> int:
        """Bytes of all parts of a phase."""
        return sum(part.bytes for part in self.parts if part.phase is phase)

    def training(self, *, frozen: bool = True) -> int:
        """Bytes of a training GPU; without the models that are only run where they are not `frozen` there."""
        left_out = 0 if frozen else sum(part.bytes for part in self.parts if part.name.startswith(_FROZEN))
        return self.total(Phase.TRAINING) - left_out


class Residence(Struct):
    """What stays in the memory of a training GPU, and when. The same on all ranks."""

    sleeps: bool
    """Whether ranks and engines leave the GPU to each other in turn; otherwise all of them stay."""
    frozen_leave: bool
    """Whether the models that are only run leave the GPU while others are trained."""
    gradient_checkpointing: bool
    """Whether activations are recomputed in the backward pass."""


def reside(plain: MemoryEstimate, checkpointed: MemoryEstimate, engines_share: float, gpu_bytes: int) -> Residence:
    """The least that must be done for a rank to fit on a GPU of `gpu_bytes`.

    `plain` and `checkpointed` are the estimates without and with gradient checkpointing; the same where the spec
    decides it. `engines_share`: share of the GPU that engines on it take while they roll out, 0 where none are. First
    nothing is done, then ranks and engines take turns, then frozen models leave, then activations are recomputed; where
    even that does not fit, all of it is done.
    """
    room = gpu_bytes * USABLE
    for estimated in (plain, checkpointed):
        for frozen_leave in (False, True):
            needed = estimated.training(frozen=not frozen_leave)
            checkpointing = estimated.gradient_checkpointing
            if needed + engines_share * gpu_bytes <= room:
                return Residence(sleeps=False, frozen_leave=frozen_leave, gradient_checkpointing=checkpointing)
            if needed <= room:
                return Residence(
                    sleeps=engines_share > 0, frozen_leave=frozen_leave, gradient_checkpointing=checkpointing
                )
    return Residence(
        sleeps=engines_share > 0, frozen_leave=True, gradient_checkpointing=checkpointed.gradient_checkpointing
    )


def estimate(
    shape: ModelShape,
    spec: Spec,
    plan: Plan,
    reward_models: Sequence[ModelShape] = (),
    *,
    gradient_checkpointing: bool = False,
) -> MemoryEstimate:
    """The memory that a job needs on each GPU.

    `gradient_checkpointing` says what holds where training.gradientCheckpointing is absent, which the ranks decide when
    they know their GPUs (`reside`).
    """
    wanted = spec.training.gradient_checkpointing
    checkpointing = gradient_checkpointing if wanted is None else wanted
    width = 2 if plan.precision is Precision.BF16 else 4
    trained = [("actor", shape.parameters)]
    if spec.algorithm.has_critic:
        trained.append(("critic", shape.body + shape.hidden))
    frozen = [("reference", shape.parameters)] if spec.algorithm.kl.coefficient > 0 else []
    frozen += [(f"reward model {i}", model.body + model.hidden) for i, model in enumerate(reward_models)]
    parts = [part for name, count in trained for part in _trained(name, count, spec, plan, width)]
    parts += _gradients(trained, plan, width)
    share = plan.ranks if plan.zero_stage is ZeroStage.PARAMETERS else 1
    parts += [_part(Phase.TRAINING, f"{_FROZEN}{name}: weights", count * width // share) for name, count in frozen]
    parts += _passes(shape, spec, plan, width, checkpointing)
    parts += _engines(shape, spec, plan, width)
    return MemoryEstimate(parts=tuple(parts), gradient_checkpointing=checkpointing)


def _trained(name: str, count: int, spec: Spec, plan: Plan, width: int) -> list[MemoryPart]:
    """A model with its optimizer (https://arxiv.org/abs/1910.02054, section 3.1).

    Masters are float32 copies of the weights; under stage 0 and FP32 the weights are their own.
    """
    offload, states = spec.training.offload, count // _shards(plan)
    masters = 0 if plan.zero_stage is ZeroStage.REPLICATED and width == 4 else 4 * states
    weights = count * width // (plan.ranks if plan.zero_stage is ZeroStage.PARAMETERS else 1)
    on = {True: Phase.HOST, False: Phase.TRAINING}
    return [
        _part(on[offload.parameters], f"{name}: weights", weights),
        _part(on[offload.optimizer], f"{name}: float32 masters", masters),
        _part(on[offload.optimizer], f"{name}: AdamW moments", 8 * states),
    ]


def _gradients(trained: Sequence[tuple[str, int]], plan: Plan, width: int) -> list[MemoryPart]:
    """Sums of gradients in float32, and what they pass through: a bucket under ZeRO, a flat copy under stage 0.

    Those of actor and critic exist at once, since they take their step together or not at all.
    """
    sizes = {}
    for name, count in trained:
        states, bucket = 4 * (count // _shards(plan)), 4 * min(count, BUCKET)
        match plan.zero_stage:
            case ZeroStage.REPLICATED:
                sizes[name] = (4 + width) * count
            case ZeroStage.OPTIMIZER:
                sizes[name] = 4 * count + states + bucket
            case ZeroStage.GRADIENTS | ZeroStage.PARAMETERS:
                sizes[name] = states + bucket
    return [_part(Phase.TRAINING, f"{name}: gradients", size) for name, size in sizes.items()]


def _shards(plan: Plan) -> int:
    """Ranks that share out a model's optimizer."""
    return 1 if plan.zero_stage is ZeroStage.REPLICATED else plan.ranks


def _passes(shape: ModelShape, spec: Spec, plan: Plan, width: int, checkpointing: bool) -> list[MemoryPart]:
    """A forward and backward pass over the largest pack."""
    sampling = spec.rollout.sampling
    longest = spec.data.max_prompt_tokens + sampling.max_new_tokens
    samples = -(-spec.training.train_batch_size // plan.ranks)
    if plan.gradient_accumulation_steps is not None:
        tokens = -(-samples // plan.gradient_accumulation_steps) * longest
    else:
        assert plan.max_tokens_per_micro_batch is not None
        tokens = min(plan.max_tokens_per_micro_batch, samples * longest)
    responses = -(-tokens * sampling.max_new_tokens // longest)
    fused = not spec.cluster.cpu_only
    layer = layer_activations(shape, width, fused=fused) * tokens
    kept = layer + checkpoints(shape, width, fused=fused) * tokens if checkpointing else shape.layers * layer
    working = 3 * shape.intermediate * width * tokens
    logits = min(LOGITS_BYTES, 4 * shape.vocabulary * responses)
    # at once in the backward pass: logits, their logarithms of probabilities and the gradients of both
    head = logits * (2 * width + (4 if width == 2 else 0) + 8) // 4
    return [
        _part(Phase.TRAINING, "activations of a pack", kept + working),
        _part(Phase.TRAINING, "logits", head + 2 * responses * shape.hidden * width),
    ]


def layer_activations(shape: ModelShape, width: int, *, fused: bool) -> int:
    """Bytes that a decoder layer keeps for its backward pass, a token. `fused`: with Liger's kernels.

    Per norm its input (in float32 where it is not fused), what is scaled and its output; queries, keys, values and the
    attention's output; the feed-forward layer's gate, its activation, its values and their product.
    """
    queries, keys = shape.heads * shape.head, shape.key_value_heads * shape.head
    if fused:
        return width * (4 * shape.hidden + 2 * queries + 2 * keys + 3 * shape.intermediate)
    norms = 2 * (4 + 2 * width) * shape.hidden
    return norms + width * (3 * queries + 2 * keys + 4 * shape.intermediate)


def checkpoints(shape: ModelShape, width: int, *, fused: bool) -> int:
    """Bytes a token that are kept with gradient checkpointing: each layer's input and the last norm."""
    return shape.hidden * (shape.layers * width + (2 * width if fused else 4 + 2 * width))


def _engines(shape: ModelShape, spec: Spec, plan: Plan, width: int) -> list[MemoryPart]:
    engines = max(len(slot.engines) for slot in plan.slots())
    rollout, parallel = spec.rollout, plan.tensor_parallel_size
    longest = spec.data.max_prompt_tokens + rollout.sampling.max_new_tokens
    key_values = 2 * shape.layers * shape.key_value_heads * shape.head * width
    batched = rollout.max_num_batched_tokens * width * (2 * shape.intermediate + 4 * shape.hidden)
    # an engine's activations are whole on each of its GPUs
    logits = rollout.max_num_seqs * shape.vocabulary * 8
    return [
        _part(Phase.ROLLOUT, "engines: weights", engines * shape.parameters * width // parallel),
        # vLLM takes less where it is not there, and then decodes fewer sequences at once
        _part(Phase.ROLLOUT, "engines: KV cache of maxNumSeqs longest samples",
              engines * rollout.max_num_seqs * longest * key_values // parallel),
        _part(Phase.ROLLOUT, "engines: activations", engines * (batched + logits)),
    ]  # fmt: skip


def _part(phase: Phase, name: str, size: int) -> MemoryPart:
    return MemoryPart(phase=phase, name=name, bytes=size)
