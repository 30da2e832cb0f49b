"""vLLM's own engine, made for one of ours."""

import os
from typing import Any

import torch

from simplerl_trainer.rollout import cuda, kv_cache, shared_names, worker_faults
from simplerl_trainer.rollout.protocol import EngineSetup

_EXTENSION = "simplerl_trainer.rollout.worker_extension.WorkerExtension"


def build(setup: EngineSetup) -> tuple[Any, dict[str, str]]:
    """An LLMEngine with its model loaded, and versions. The process is to hold this one alone."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the model lives in this process
    if setup.cpu_only:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    import vllm

    max_num_seqs = min(setup.max_num_seqs, setup.max_num_batched_tokens)
    arguments = vllm.EngineArgs(
        model=setup.model_folder,
        skip_tokenizer_init=True,
        tensor_parallel_size=setup.tensor_parallel_size,
        distributed_executor_backend="mp" if setup.tensor_parallel_size > 1 else None,
        dtype="bfloat16" if setup.bf16 else "float32",
        seed=setup.seed,
        max_model_len=setup.max_model_len,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=setup.max_num_batched_tokens,
        enforce_eager=setup.cpu_only,
        kv_cache_memory_bytes=kv_cache.budget(setup),
        generation_config="vllm",  # the model folder's generation_config must not reach the sampling
        logprobs_mode="processed_logprobs",
        # a response's rounding depends on how much of its prompt is in the cache, and so on the past
        enable_prefix_caching=not setup.deterministic,
        worker_extension_cls=_EXTENSION,
        disable_log_stats=True,
        **({} if setup.cpu_only else cuda.arguments(max_num_seqs)),
    )
    with worker_faults.named():
        llm: Any = vllm.LLMEngine.from_engine_args(arguments)
    if not setup.cpu_only:
        cuda.check_runner(llm)
    if setup.tensor_parallel_size > 1:
        llm.model_executor.register_failure_callback(worker_faults.end)
        llm.collective_rpc("forget_names")
        shared_names.forget()
    if setup.vocabulary is not None:
        llm.collective_rpc("draw_below", args=(setup.vocabulary,))
    return llm, {"vllm": vllm.__version__, "torch": torch.__version__}
