"""Requests and responses in vLLM's terms."""

from collections.abc import Sequence
from typing import Any

from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.samples import Finish

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.01, 2.0
"""vLLM raises lower ones to the lowest, which the ranks would not know of, and refuses higher ones."""
FINISH = {"stop": Finish.STOP, "length": Finish.LENGTH}
"""vLLM's finish reasons that end a response; others mean that it was aborted."""


def check(request: Request, max_model_len: int) -> None:
    """Raises ValueError where the engine could not draw the request as it is meant."""
    if len(request.prompt_ids) + request.max_new_tokens > max_model_len:
        raise ValueError(
            f"request {request.id} has a prompt of {len(request.prompt_ids)} tokens and asks for "
            f"{request.max_new_tokens}: the engine holds {max_model_len} in all"
        )
    if request.temperature != 0 and not LOWEST_TEMPERATURE <= request.temperature <= HIGHEST_TEMPERATURE:
        raise ValueError(
            f"request {request.id} has temperature {request.temperature}: vLLM draws at 0, or "
            f"{LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE}"
        )


def to_vllm(request: Request, stop_token_ids: Sequence[int]) -> tuple[str, Any, Any]:
    """Arguments of LLMEngine.add_request."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    params = SamplingParams(
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed,
        max_tokens=request.max_new_tokens,
        stop_token_ids=list(stop_token_ids),
        ignore_eos=True,  # the setup names every id that ends a response
        logprobs=0 if request.logprobs else None,  # 0: of the drawn token alone
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    return str(request.id), {"prompt_token_ids": list(request.prompt_ids)}, params


def from_vllm(request: Request, drawn: Any, version: int) -> Finished:
    """What vLLM drew (its CompletionOutput) of a request."""
    ids = tuple(drawn.token_ids)
    logprobs = None
    if request.logprobs:
        logprobs = tuple(of[i].logprob for i, of in zip(ids, drawn.logprobs, strict=True))
    return Finished(request.id, ids, FINISH[drawn.finish_reason], logprobs, version)
