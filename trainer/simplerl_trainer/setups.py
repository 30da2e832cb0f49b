"""What ranks and engines are told at their start, from the run's spec and plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from simplerl_api import engine_count
from simplerl_api.plan import Slot
from simplerl_api.residence import shardings
from simplerl_api.run import Run
from simplerl_api.spec.rollout import Overlap
from simplerl_api.spec.training import MICRO_BATCH_TOKENS, Precision
from simplerl_trainer.models import families, judges
from simplerl_trainer.policy.protocol import JudgeSetup, MemoryNeeds, RankSetup
from simplerl_trainer.rollout.protocol import EngineSetup
from simplerl_trainer.site import Site


def rank_setup(
    run: Run, slot: Slot, site: Site, vocabulary: int, needs: MemoryNeeds, address: str, port: int, timeout: float
) -> RankSetup:
    assert slot.rank is not None
    return RankSetup(
        rank=slot.rank,
        world_size=run.plan.ranks,
        master_address=address,
        master_port=port,
        model_folder=site.model_folders[slot.node],
        algorithm=run.spec.algorithm,
        training=run.spec.training,
        zero_stage=run.plan.zero_stage,
        precision=run.plan.precision,
        temperature=run.spec.rollout.sampling.temperature,
        optimizer_steps_per_step=run.plan.optimizer_steps_per_step,
        max_tokens=run.spec.data.max_prompt_tokens + run.spec.rollout.sampling.max_new_tokens,
        max_new_tokens=run.spec.rollout.sampling.max_new_tokens,
        cpu_only=run.spec.cluster.cpu_only,
        timeout=timeout,
        decoupled=run.spec.rollout.overlap is Overlap.ONE_STEP,
        vocabulary=vocabulary,
        judges=tuple(
            JudgeSetup(
                r.name, site.judge_folders[slot.node][i], f"rewards[{i}].model.{r.model.tag}", r.weight, r.model.failed
            )
            for i, r in enumerate(run.spec.rewards)
            if r.model
        ),
        judge_tokens=run.plan.max_tokens_per_micro_batch or MICRO_BATCH_TOKENS,
        memory=needs if slot.engines else replace(needs, engines_share=0.0),
    )


def memory_needs(run: Run, folder: Path, judge_folders: Mapping[int, Path]) -> MemoryNeeds:
    """What the estimate says of a GPU with a rank and engines; the folders are those on the driver's node."""
    shape = families.shape(folder)
    models = [judges.read(path, f"rewards[{i}].model", weights=False).shape for i, path in judge_folders.items()]
    return MemoryNeeds(shardings(shape, run.spec, run.plan, models), run.spec.rollout.gpu_memory_utilization)


def idle_advice(run: Run, folder: Path) -> str | None:
    """What to set where one engine of a small model leaves its GPU idle: who planned the run did not see the model."""
    rollout, parameters = run.spec.rollout, families.shape(folder).parameters
    wanted = engine_count.default_engines_per_gpu(run.spec, parameters)
    held = max(len(slot.engines) for slot in run.plan.slots())
    if rollout.engines is not None or rollout.engines_per_gpu is not None or held >= wanted:
        return None
    return (
        f"the model has {parameters:,} parameters, and {held} engine on each GPU that rolls out leaves it idle: set "
        f"rollout.enginesPerGpu to {wanted}"
    )


def engine_setup(run: Run, slot: Slot, site: Site, stop_token_ids: Sequence[int], vocabulary: int) -> EngineSetup:
    spec = run.spec
    longest = spec.rollout.sampling.max_new_tokens
    if spec.evaluation and spec.evaluation.max_new_tokens:
        longest = max(longest, spec.evaluation.max_new_tokens)
    return EngineSetup(
        model_folder=site.model_folders[slot.node],
        bf16=run.plan.precision is Precision.BF16,
        cpu_only=spec.cluster.cpu_only,
        max_model_len=spec.data.max_prompt_tokens + longest,
        max_num_seqs=spec.rollout.max_num_seqs,
        max_num_batched_tokens=spec.rollout.max_num_batched_tokens,
        gpu_memory_share=spec.rollout.gpu_memory_utilization / len(slot.engines),
        stop_token_ids=tuple(stop_token_ids),
        seed=spec.training.seed,
        deterministic=spec.training.deterministic,
        vocabulary=vocabulary,
        tensor_parallel_size=run.plan.tensor_parallel_size,
        verify_weights=spec.rollout.verify_weights,
    )
