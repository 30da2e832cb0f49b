"""Packs: the trajectories of one forward and backward pass, end to end in one row without padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from simplerl_trainer.policy.attention import Layout, make_layout
from simplerl_trainer.policy.protocol import Trajectory


@dataclass(frozen=True, slots=True)
class Pack:
    """Trajectories as tensors: T tokens go through the model, R of their positions predict a response's token.

    A trajectory's last token is left out, since nothing is predicted from it. Per-token results are [R], the responses
    end to end: no masks are needed.
    """

    ids: torch.Tensor
    """[1, T] int64"""
    positions: torch.Tensor
    """[1, T] int64; starts at 0 in each sequence."""
    layout: Layout
    predicts: torch.Tensor
    """[R] int64: positions of the row whose next token belongs to a response."""
    targets: torch.Tensor
    """[R] int64: those next tokens."""
    sample_ids: tuple[int, ...]
    """The n samples of the pack, in order."""
    groups: tuple[int, ...]
    """The group of each."""
    response_lengths: tuple[int, ...]
    """R in all."""
    scores: torch.Tensor
    """[n] float32"""
    probe: torch.Tensor
    """[P] int64: which of the R tokens have a log-probability of the engine."""
    probe_logprobs: torch.Tensor
    """[P] float32: those, in nats."""

    @property
    def tokens(self) -> int:
        """R, the valid tokens of the pack."""
        return sum(self.response_lengths)


def make_pack(trajectories: Sequence[Trajectory], device: torch.device) -> Pack:
    """The pack of these trajectories; each has a prompt and a response of at least one token.

    A pack of none holds one token that predicts nothing, so that its pass is like any other and weighs 0.
    """
    ids: list[int] = []
    positions: list[int] = []
    lengths: list[int] = []
    predicts: list[int] = []
    targets: list[int] = []
    probe: list[int] = []
    probe_logprobs: list[float] = []
    for t in trajectories:
        row = (t.prompt_ids + t.response_ids)[:-1]
        first = len(ids) + len(t.prompt_ids) - 1
        if t.logprobs is not None:
            probe.extend(range(len(targets), len(targets) + len(t.response_ids)))
            probe_logprobs.extend(t.logprobs)
        predicts.extend(range(first, first + len(t.response_ids)))
        targets.extend(t.response_ids)
        ids.extend(row)
        positions.extend(range(len(row)))
        lengths.append(len(row))
    if not trajectories:
        ids, positions, lengths = [0], [0], [1]

    def tensor(x: list[int] | list[float], dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(x, dtype=dtype).to(device)

    return Pack(
        ids=tensor(ids, torch.int64).unsqueeze(0),
        positions=tensor(positions, torch.int64).unsqueeze(0),
        layout=make_layout(lengths, device),
        predicts=tensor(predicts, torch.int64),
        targets=tensor(targets, torch.int64),
        sample_ids=tuple(t.sample_id for t in trajectories),
        groups=tuple(t.group for t in trajectories),
        response_lengths=tuple(len(t.response_ids) for t in trajectories),
        scores=tensor([t.score for t in trajectories], torch.float32),
        probe=tensor(probe, torch.int64),
        probe_logprobs=tensor(probe_logprobs, torch.float32),
    )
