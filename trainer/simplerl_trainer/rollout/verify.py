"""Whether a model in vLLM computes with the weights that were sent: the debug check of a weight sync.

Each worker checks the pieces that it holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding

from simplerl_trainer.rollout.fused import EMBEDDING, HEAD, is_tied, parts
from simplerl_trainer.rollout.shards import Shard

_PERIOD = 65521  # positions repeat in the checksum's weights after this prime, so that sums stay cheap


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came of one parameter, or of the piece of it that this worker holds."""

    rows: int
    """Size of its first dimension."""
    checksum: int


def arrived(tensor: torch.Tensor, shard: Shard | None, dtype: torch.dtype) -> Arrived:
    """What is remembered of a tensor that came, in the model's type."""
    piece = tensor if shard is None else shard.of(tensor)
    return Arrived(piece.shape[0], checksum(piece.to(dtype)))


def checksum(tensor: torch.Tensor) -> int:
    """Sum of all elements' bits, each weighted by its position; a swap of two elements changes it."""
    bits = tensor.contiguous().view(-1).view(torch.int32 if tensor.element_size() == 4 else torch.int16).long()
    positions = torch.arange(bits.numel(), device=bits.device).remainder_(_PERIOD).add_(1)
    return int((bits * positions).sum())


def differences(model: torch.nn.Module, came: Mapping[str, Arrived]) -> set[str]:
    """Hugging Face names of the parameters whose values in the model are not those that came."""
    came = {**came, HEAD: came[EMBEDDING]} if is_tied(model) else came
    wrong: set[str] = set()
    for module_name, module in model.named_modules():
        for kind, parameter in module.named_parameters(recurse=False):
            names = parts(model, f"{module_name}.{kind}")
            held = _held(module, kind, parameter)
            sizes = [came[name].rows for name in names]
            pieces = held[: sum(sizes)].split(sizes)  # vLLM pads the vocabulary
            wrong |= {n for n, piece in zip(names, pieces, strict=True) if checksum(piece) != came[n].checksum}
    return wrong


def _held(module: torch.nn.Module, kind: str, parameter: torch.Tensor) -> torch.Tensor:
    """What a module computes with: [out, in] of a weight, [out] of a bias or norm.

    On CPU vLLM multiplies with a packed copy, and empties the parameter of a linear layer; the copy is read off by
    multiplying with the identity, which is exact.
    """
    looks_up = isinstance(module, VocabParallelEmbedding) and not isinstance(module, ParallelLMHead)
    if kind != "weight" or looks_up or not hasattr(module, "cpu_linear"):
        return parameter.detach()
    columns = module.embedding_dim if isinstance(module, ParallelLMHead) else module.input_size_per_partition
    with torch.no_grad():
        return module.quant_method.apply(module, torch.eye(columns, dtype=parameter.dtype)).T
