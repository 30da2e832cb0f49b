"""Causal attention over packs: sequences of different lengths that lie end to end in one row.

Registered with transformers under one name. On CUDA the kernel takes the sequences as they lie; on CPU and in float32
they are laid side by side in right-padded blocks of similar lengths, which is exact: a real token never sees a later
pad.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import accumulate
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

NAME = "simplerl_packed"
"""Name in transformers' attention interface: the value of `attn_implementation`."""

_SPREAD = 1.25
"""Sequences share a block when the longest is at most this many times the shortest: pads cost less than calls."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where P places, right-padded blocks of sequences, lie among the T tokens of a pack."""

    shapes: tuple[tuple[int, int], ...]
    """Sequences and width (their longest length) of each block."""
    token_at: torch.Tensor
    """[P] int64: the token at each place, block by block; pads repeat a token of their sequence."""
    place_of: torch.Tensor
    """[T] int64: the place of each token."""


@dataclass(frozen=True)
class Layout:
    """Where the sequences of a pack of T tokens lie."""

    cu_seqlens: torch.Tensor
    """[n + 1] int32: the sequences' first tokens and the pack's end."""
    lengths: tuple[int, ...]

    @property
    def longest(self) -> int:
        return max(self.lengths)

    @cached_property
    def blocks(self) -> Blocks:
        """The same sequences side by side; made when first asked for, since CUDA's kernel needs none."""
        starts = list(accumulate(self.lengths, initial=0))
        groups = _groups(self.lengths)
        token_at, inside = zip(*(_places(group, starts, self.lengths) for group in groups), strict=True)
        tokens, real = torch.cat(token_at), torch.cat(inside).nonzero().flatten()
        place_of = torch.empty_like(real)
        place_of[tokens[real]] = real
        device = self.cu_seqlens.device
        shapes = tuple((len(group), max(self.lengths[s] for s in group)) for group in groups)
        return Blocks(shapes, tokens.to(device), place_of.to(device))


def make_layout(lengths: Sequence[int], device: torch.device) -> Layout:
    """The layout of sequences with these lengths, each at least 1."""
    starts = list(accumulate(lengths, initial=0))
    return Layout(torch.tensor(starts, dtype=torch.int32, device=device), tuple(lengths))


def _groups(lengths: Sequence[int]) -> list[list[int]]:
    """Sequences by block, shortest first."""
    groups: list[list[int]] = []
    for sequence in sorted(range(len(lengths)), key=lambda s: lengths[s]):
        if not groups or lengths[sequence] > _SPREAD * lengths[groups[-1][0]] + 1:
            groups.append([])
        groups[-1].append(sequence)
    return groups


def _places(group: Sequence[int], starts: Sequence[int], lengths: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The token at each place of a block, and whether it is not a pad; both [n x L]."""
    sizes = torch.tensor([lengths[s] for s in group])[:, None]
    column = torch.arange(int(sizes.max()))
    inside = column < sizes
    first = torch.tensor([starts[s] for s in group])[:, None]
    return (first + torch.where(inside, column, 0)).flatten(), inside.flatten()


class _Spread(torch.autograd.Function):
    """Tensors [T, F] by token -> [P, F] by place.

    Pads get no gradient, since no real token sees them: the backward is a gather too, and not a slow addition.
    """

    @staticmethod
    def forward(ctx: Any, blocks: Blocks, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.blocks = blocks
        return tuple(x.index_select(0, blocks.token_at) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, *(g.index_select(0, ctx.blocks.place_of) for g in gradients)


class _Collect(torch.autograd.Function):
    """[P, F] by place -> [T, F] by token."""

    @staticmethod
    def forward(ctx: Any, blocks: Blocks, x: torch.Tensor) -> torch.Tensor:
        ctx.blocks = blocks
        return x.index_select(0, blocks.place_of)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        (gradient,) = gradients
        places = gradient.new_zeros(ctx.blocks.token_at.numel(), gradient.shape[1])
        return None, places.index_copy_(0, ctx.blocks.place_of, gradient)


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    layout: Layout,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention within each sequence of the pack, as transformers calls it.

    `query` is [1, H, T, D], `key` and `value` are [1, K, T, D] with H a multiple of K (grouped queries). Returns
    [1, T, H, D] and no weights.
    """
    tokens = [x[0].transpose(0, 1) for x in (query, key, value)]
    flash = query.device.type == "cuda" and query.dtype != torch.float32  # the kernel takes 16-bit floats alone
    out = _variable(tokens, layout, scaling) if flash else _blocked(tokens, layout.blocks, scaling)
    return out.unsqueeze(0), None


def _variable(tokens: Sequence[torch.Tensor], layout: Layout, scaling: float) -> torch.Tensor:
    from torch.nn.attention.varlen import varlen_attn

    query, key, value = (x.contiguous() for x in tokens)
    cu, longest = layout.cu_seqlens, layout.longest
    # torch 2.11 takes grouped queries as they are and has no word for them
    grouped = {"enable_gqa": True} if "enable_gqa" in signature(varlen_attn).parameters else {}
    out = varlen_attn(query, key, value, cu, cu, longest, longest, scale=scaling, window_size=(-1, 0), **grouped)
    assert isinstance(out, torch.Tensor)
    return out


def _blocked(tokens: Sequence[torch.Tensor], blocks: Blocks, scaling: float) -> torch.Tensor:
    count, heads, size = tokens[0].shape
    spread = _Spread.apply(blocks, *(x.reshape(count, -1) for x in tokens))
    cuts = [rows * width for rows, width in blocks.shapes]
    done = []
    for (rows, width), *parts in zip(blocks.shapes, *(x.split(cuts) for x in spread), strict=True):
        query, key, value = (x.view(rows, width, -1, size).transpose(1, 2) for x in parts)
        out = scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]
        )
        done.append(out.transpose(1, 2).reshape(rows * width, -1))
    return _Collect.apply(blocks, torch.cat(done)).view(count, heads, size)


AttentionInterface.register(NAME, packed_attention)
