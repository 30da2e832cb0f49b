"""What changes for the next attempt when one ran out of memory: the effective spec is the spec and these, in order.

Each change costs time and no quality: samples, batches and losses stay what they are, whatever a micro-batch holds.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue, ValidationError

from simplerl_api.failures import FailureReason
from simplerl_api.plan import PlacementKind, Plan
from simplerl_api.run import Run
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import ZeroStage
from simplerl_api.status import Adaptation

LEAST_BATCHED_TOKENS, LEAST_SEQUENCES = 2048, 32
"""Below these an engine gains no memory worth having, and gets slow."""
MOST = 20
"""Adaptations of a job; the ladders below are shorter."""
_Change = tuple[str, JsonValue, JsonValue]
"""A field's path, its value, and the new one."""
_Step = Callable[[Spec, Plan], _Change | None]


def effective(spec: Spec, adaptations: Sequence[Adaptation]) -> Spec:
    """The spec with these changes."""
    for adaptation in adaptations:
        spec = _changed(spec, adaptation.path, adaptation.to) or spec
    return spec


def adapted(plan: Plan, spec: Spec) -> Plan:
    """The plan of the first start with what the effective spec makes of it; an engine on twice as many GPUs takes the
    place of two."""
    training, size = spec.training, spec.rollout.tensor_parallel_size
    return plan.model_copy(
        update={
            "engines": plan.engines * plan.tensor_parallel_size // size,
            "tensor_parallel_size": size,
            "zero_stage": plan.zero_stage if training.zero_stage is None else training.zero_stage,
            "max_tokens_per_micro_batch": training.max_tokens_per_micro_batch or plan.max_tokens_per_micro_batch,
            "gradient_accumulation_steps": training.gradient_accumulation_steps,
        }
    )


def following(spec: Spec, plan: Plan, reason: str, attempt: int) -> Adaptation | None:
    """The next change after an attempt that ended for a reason; `spec` and `plan` are the effective ones, `attempt` is
    the one that will have it. None where the reason is another one, or nothing is left to change."""
    for step in LADDERS.get(reason, ()):
        change = step(spec, plan)
        if change is not None:
            path, before, to = change
            if _changed(spec, path, to) is not None:
                return Adaptation(attempt=attempt, reason=reason, path=path, before=before, to=to)
    return None


def taken_up(run: Run, arguments: Sequence[str]) -> Run:
    """The run with the changes that came as arguments of its driver (run.entrypoint)."""
    pairs = (argument.split("=", 1) for argument in arguments)
    changes = [Adaptation(attempt=run.attempt, reason="", path=path, to=json.loads(to)) for path, to in pairs]
    spec = effective(run.spec, changes)
    return run.model_copy(update={"spec": spec, "plan": adapted(run.plan, spec)}) if changes else run


def _fewer_batched_tokens(spec: Spec, plan: Plan) -> _Change | None:
    now = spec.rollout.max_num_batched_tokens
    least = max(LEAST_BATCHED_TOKENS, spec.rollout.max_num_seqs)  # vLLM wants a token for each sequence
    return None if now <= least else ("rollout.maxNumBatchedTokens", now, max(now // 2, least))


def _fewer_sequences(spec: Spec, plan: Plan) -> _Change | None:
    now = spec.rollout.max_num_seqs
    return None if now <= LEAST_SEQUENCES else ("rollout.maxNumSeqs", now, max(now // 2, LEAST_SEQUENCES))


def _wider_engines(spec: Spec, plan: Plan) -> _Change | None:
    now = spec.rollout.tensor_parallel_size
    rolling = plan.gpus if plan.placement is PlacementKind.COLOCATED else plan.gpus - plan.ranks
    whole = plan.gpus_per_node % (2 * now) == 0 and rolling % (2 * now) == 0 and plan.engines % 2 == 0
    if spec.cluster.cpu_only or spec.rollout.elastic is not None or now == 8 or not whole:
        return None
    return "rollout.tensorParallelSize", now, 2 * now


def _smaller_micro_batches(spec: Spec, plan: Plan) -> _Change | None:
    if (several := plan.gradient_accumulation_steps) is not None:
        most = spec.training.train_batch_size // plan.ranks
        return None if several >= most else ("training.gradientAccumulationSteps", several, min(several * 2, most))
    longest = spec.data.max_prompt_tokens + spec.rollout.sampling.max_new_tokens
    now = plan.max_tokens_per_micro_batch
    return None if now is None or now <= longest else ("training.maxTokensPerMicroBatch", now, max(now // 2, longest))


def _recomputed_activations(spec: Spec, plan: Plan) -> _Change | None:
    now = spec.training.gradient_checkpointing
    return None if now else ("training.gradientCheckpointing", now, True)


def _shared_parameters(spec: Spec, plan: Plan) -> _Change | None:
    now = spec.training.zero_stage
    if now is ZeroStage.PARAMETERS or plan.ranks == 1 or spec.cluster.cpu_only:
        return None
    return "training.zeroStage", None if now is None else int(now), int(ZeroStage.PARAMETERS)


def _offloaded_optimizer(spec: Spec, plan: Plan) -> _Change | None:
    now = spec.training.offload.optimizer
    return None if now or spec.cluster.cpu_only else ("training.offload.optimizer", now, True)


LADDERS: Mapping[str, Sequence[_Step]] = {
    FailureReason.ROLLOUT_OUT_OF_MEMORY: (_fewer_batched_tokens, _fewer_sequences, _wider_engines),
    FailureReason.TRAINING_OUT_OF_MEMORY: (
        _smaller_micro_batches, _recomputed_activations, _shared_parameters, _offloaded_optimizer,
    ),
}  # fmt: skip
"""What is tried, the cheapest first; a step is taken again as long as it has something left."""


def _changed(spec: Spec, path: str, value: JsonValue) -> Spec | None:
    """The spec with one field set; None where that is no valid job."""
    document = spec.document()
    *sections, name = path.split(".")
    holder = document
    for section in sections:
        holder = holder.setdefault(section, {})
    holder[name] = value
    try:
        return Spec.model_validate(document)
    except ValidationError:
        return None
