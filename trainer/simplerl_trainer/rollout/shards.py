"""Which part of each parameter a worker of an engine holds.

Stated independently of vLLM's loaders, so that the check of a weight sync does not trust what it checks. The layout is
Megatron's (https://arxiv.org/abs/1909.08053): the first matrix of a pair is cut by rows of its output, the second by
columns of its input; embedding and head are cut by rows of the vocabulary. Heads of keys and values are repeated where
there are fewer of them than workers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

from simplerl_trainer.rollout.fused import parts


@dataclass(frozen=True, slots=True)
class Shard:
    """A piece of a parameter along one of its dimensions."""

    dim: int
    start: int
    size: int

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The piece of the whole parameter, as a view."""
        return tensor.narrow(self.dim, self.start, self.size)


def shards(model: torch.nn.Module) -> Mapping[str, Shard]:
    """The pieces that this worker holds of the parameters that are cut, by their Hugging Face names."""
    held: dict[str, Shard] = {}
    for module_name, module in model.named_modules():
        for kind, _ in module.named_parameters(recurse=False):
            held |= zip(parts(model, f"{module_name}.{kind}"), _of_module(module, kind), strict=False)
    return held


def _of_module(module: torch.nn.Module, kind: str) -> Sequence[Shard]:
    """The pieces of what a module's parameter was fused from, in order; none where it is whole."""
    match module:
        case VocabParallelEmbedding():  # the head too
            rows = module.shard_indices
            return [Shard(0, rows.org_vocab_start_index, rows.org_vocab_end_index - rows.org_vocab_start_index)]
        case QKVParallelLinear():
            queries, keys = module.num_heads * module.head_size, module.num_kv_heads * module.head_size
            group = module.tp_rank // module.num_kv_head_replicas
            return [
                Shard(0, module.tp_rank * queries, queries),
                Shard(0, group * keys, keys),
                Shard(0, group * keys, keys),
            ]
        case MergedColumnParallelLinear():
            return [_rank_th(0, size // module.tp_size, module.tp_rank) for size in module.output_sizes]
        case ColumnParallelLinear():
            return [_rank_th(0, module.output_size_per_partition, module.tp_rank)]
        case RowParallelLinear() if kind == "weight":
            return [_rank_th(1, module.input_size_per_partition, module.tp_rank)]
        case _:
            return []


def _rank_th(dim: int, size: int, rank: int) -> Shard:
    return Shard(dim, rank * size, size)
