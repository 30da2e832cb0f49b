"""How much memory a job needs on each GPU, estimated from its plan and its model's config.json. Pure functions.

What is counted are the tensors that the job's own sizes decide. What CUDA, NCCL and the allocators take for themselves
(one or two GiB a process) comes on top.
"""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field

from simplerl_api.model_shape import ModelShape
from simplerl_api.plan import Plan
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import Precision, ZeroStage
from simplerl_api.struct import Struct, Text

LOGITS_BYTES = 512 * 2**20
"""Bytes of float32 logits that exist at once on a rank; a response's tokens are taken in chunks of that many."""
BUCKET = 500_000_000
"""Elements of DeepSpeed's largest communication bucket, which is allocated at once."""
GIB = 2**30
FROZEN = "frozen "
"""What the names of models begin with that are only run."""
PASSES = ("activations of a pack", "logits")
"""What exists while a pack passes and at no other time."""


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
        left_out = 0 if frozen else sum(part.bytes for part in self.parts if part.name.startswith(FROZEN))
        return self.total(Phase.TRAINING) - left_out


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
    they know their GPUs (simplerl_api.residence).
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
    parts += [_part(Phase.TRAINING, f"{FROZEN}{name}: weights", count * width // share) for name, count in frozen]
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
        _part(Phase.TRAINING, PASSES[0], kept + working),
        _part(Phase.TRAINING, PASSES[1], head + 2 * responses * shape.hidden * width),
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
