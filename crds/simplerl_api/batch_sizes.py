"""How the samples of a step are dealt out to optimizer steps, ranks and micro-batches."""

from simplerl_api.plan_error import PlanError
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import MICRO_BATCH_TOKENS


def optimizer_steps(spec: Spec, ranks: int) -> int:
    """Optimizer steps in one pass over a step's samples. Raises PlanError."""
    samples, batch = spec.rollout.samples_per_step, spec.training.train_batch_size
    if samples % batch:
        fits = _neighbours(samples, batch)
        raise PlanError(
            f"training.trainBatchSize is {batch}, which does not divide the {samples} samples of a step "
            f"(rollout.promptsPerStep {spec.rollout.prompts_per_step} x rollout.samplesPerPrompt "
            f"{spec.rollout.samples_per_prompt}): {fits} would"
        )
    if batch < ranks:
        raise PlanError(
            f"training.trainBatchSize is {batch}, less than the {ranks} training ranks: use at least {ranks}"
        )
    return samples // batch


def _neighbours(samples: int, batch: int) -> str:
    below = next(b for b in range(min(batch, samples), 0, -1) if samples % b == 0)
    above = next((b for b in range(batch + 1, samples + 1) if samples % b == 0), None)
    return str(below) if above is None else f"{below} or {above}"


def micro_batch_tokens(spec: Spec) -> int | None:
    """Tokens of the largest micro-batch; None where their number is given instead. Raises PlanError."""
    if spec.training.gradient_accumulation_steps is not None:
        return None
    longest = spec.data.max_prompt_tokens + spec.rollout.sampling.max_new_tokens
    asked = spec.training.max_tokens_per_micro_batch
    if asked is None:
        return max(MICRO_BATCH_TOKENS, longest)
    if asked < longest:
        raise PlanError(
            f"training.maxTokensPerMicroBatch is {asked}, too small for one sample "
            f"of data.maxPromptTokens {spec.data.max_prompt_tokens} + rollout.sampling.maxNewTokens "
            f"{spec.rollout.sampling.max_new_tokens}: use at least {longest}"
        )
    return asked


def check_accumulation(spec: Spec, ranks: int) -> None:
    """Raises PlanError where a rank has fewer samples than micro-batches."""
    micro_batches, batch = spec.training.gradient_accumulation_steps, spec.training.train_batch_size
    if micro_batches is not None and micro_batches * ranks > batch:
        raise PlanError(
            f"training.gradientAccumulationSteps is {micro_batches}, more than the {batch // ranks} samples that each "
            f"of the {ranks} training ranks has of training.trainBatchSize {batch}: use at most {batch // ranks}"
        )
