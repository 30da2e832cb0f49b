"""The samples of a step as dense vectors, alike on all ranks, so that a group's samples may lie on any of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from simplerl_trainer.policy.packing import Pack


@dataclass(frozen=True, slots=True)
class SampleTable:
    """All n samples of a step, in the order of their ids; vectors are [n], floats float64."""

    ids: torch.Tensor
    groups: torch.Tensor
    scores: torch.Tensor
    kl: torch.Tensor
    """Sum of the KL estimates over the response's tokens, nats; 0 without a reference model."""

    def places(self, pack: Pack) -> torch.Tensor:
        """[n of the pack] int64: where a pack's samples stand in the table."""
        return torch.searchsorted(self.ids, torch.tensor(pack.sample_ids, dtype=torch.int64, device=self.ids.device))


def gather_samples(packs: Sequence[Pack], kl: Sequence[torch.Tensor | None], device: torch.device) -> SampleTable:
    """The table of the samples of all ranks' packs; `kl` has the estimate at each token [R] of each pack. Collective.

    Each sample lies on one rank: the sum over ranks of vectors that are 0 elsewhere is exact. Raises ValueError where
    no rank has a sample.
    """
    ids = [i for pack in packs for i in pack.sample_ids]
    size = torch.tensor([max(ids, default=-1) + 1], dtype=torch.int64, device=device)
    dist.all_reduce(size, dist.ReduceOp.MAX)
    if not size.item():
        raise ValueError("annotate was called without any sample: give at least one to one of the ranks")
    dense = torch.zeros(4, int(size.item()), dtype=torch.float64, device=device)
    mine = torch.tensor(ids, dtype=torch.int64, device=device)
    rows = (
        torch.ones(len(ids), dtype=torch.float64, device=device),
        torch.tensor([g for pack in packs for g in pack.groups], dtype=torch.float64, device=device),
        torch.cat([pack.scores.double() for pack in packs]),
        torch.cat([_sums(pack, estimate) for pack, estimate in zip(packs, kl, strict=True)]),
    )
    dense[:, mine] = torch.stack(rows)
    dist.all_reduce(dense)
    present, groups, scores, sums = dense
    here = present.nonzero()[:, 0]
    return SampleTable(here, groups[here].to(torch.int64), scores[here], sums[here])


def sample_means(table: SampleTable, packs: Sequence[Pack], per_token: Sequence[torch.Tensor]) -> dict[int, float]:
    """For every sample of the step by its id, the mean over its tokens of the values [R] of its pack. Collective."""
    found = torch.zeros_like(table.scores)
    for pack, values in zip(packs, per_token, strict=True):
        lengths = torch.tensor(pack.response_lengths, dtype=torch.float64, device=found.device)
        found[table.places(pack)] = _sums(pack, values) / lengths
    dist.all_reduce(found)
    return dict(zip(table.ids.tolist(), found.tolist(), strict=True))


def _sums(pack: Pack, per_token: torch.Tensor | None) -> torch.Tensor:
    sums = torch.zeros(len(pack.sample_ids), dtype=torch.float64, device=pack.scores.device)
    if per_token is None:
        return sums
    lengths = torch.tensor(pack.response_lengths, dtype=torch.int64, device=sums.device)
    place = torch.repeat_interleave(torch.arange(len(lengths), device=sums.device), lengths)
    return sums.index_add(0, place, per_token.double())
