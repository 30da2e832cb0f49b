"""The step plan: which sample is trained in which optimizer batch, on which rank, in which pack. A pure function."""

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

from simplerl_trainer.policy.protocol import StepPlan

Packs = Sequence[tuple[int, ...]]


def make_step_plan(
    lengths: Mapping[int, int],
    ranks: int,
    train_batch_size: int,
    max_tokens: int | None,
    seed: int,
    micro_batches: int | None = None,
) -> StepPlan:
    """The plan of one step: [optimizer batch][rank][pack] -> sample ids.

    `lengths` has the tokens (prompt and response) of each sample by its id; without any there are no batches. Samples
    are dealt to optimizer batches at random, by `seed` and never by length; where `train_batch_size` does not divide
    them there is one more batch, and all are of nearly the same size.
    Inside a batch the longest samples are placed first, each on the rank with the fewest tokens, so that the ranks
    differ by at most one sample's tokens. A rank's samples are packed in the same way: into `micro_batches` packs, or
    into as few packs of at most `max_tokens` tokens as the rank with most of them needs; exactly one of the two is
    given. All ranks have the same number of packs in a batch, the fullest first, since each forward pass is collective
    under ZeRO-3 and as slow as its longest pack; ranks without a sample for a pack get an empty one.

    Raises ValueError naming a sample that is longer than `max_tokens`.
    """
    assert (max_tokens is None) != (micro_batches is None), "one bound of a micro-batch"
    for sample, length in lengths.items():
        if max_tokens is not None and length > max_tokens:
            raise ValueError(
                f"sample {sample} has {length} tokens, more than training.maxTokensPerMicroBatch {max_tokens}: raise it"
            )
    ids = sorted(lengths)
    random.Random(seed).shuffle(ids)
    count = -(-len(ids) // train_batch_size)
    cuts = [len(ids) * b // max(count, 1) for b in range(count + 1)]
    batches = []
    for begin, end in pairwise(cuts):
        shares = _dealt(ids[begin:end], lengths, ranks)
        if max_tokens is not None:
            packed = _within(shares, lengths, max_tokens)
        else:
            assert micro_batches is not None
            packed = [_dealt(share, lengths, micro_batches) for share in shares]
        batches.append(tuple(tuple(sorted(packs, key=lambda p: -_tokens(p, lengths))) for packs in packed))
    return tuple(batches)


def _dealt(samples: Sequence[int], lengths: Mapping[int, int], heaps: int) -> Packs:
    """The samples on so many heaps of about equally many tokens, each longest first
    (https://en.wikipedia.org/wiki/Longest-processing-time-first_scheduling)."""
    dealt: list[list[int]] = [[] for _ in range(heaps)]
    tokens = [0] * heaps
    for sample in sorted(samples, key=lambda s: -lengths[s]):
        least = min(range(heaps), key=lambda h: (tokens[h], len(dealt[h])))
        dealt[least].append(sample)
        tokens[least] += lengths[sample]
    return [tuple(heap) for heap in dealt]


def _within(shares: Packs, lengths: Mapping[int, int], max_tokens: int) -> list[Packs]:
    """The packs of each rank: balanced where they then fit, else first-fit with empty ones for ranks with fewer."""
    tight = [first_fit(share, lengths, max_tokens) for share in shares]
    count = max(len(packs) for packs in tight)
    packed: list[Packs] = []
    for share, fitted in zip(shares, tight, strict=True):
        even = _dealt(share, lengths, count)
        fits = all(_tokens(pack, lengths) <= max_tokens for pack in even)
        packed.append(even if fits else [*fitted, *[()] * (count - len(fitted))])
    return packed


def first_fit(share: Sequence[int], lengths: Mapping[int, int], max_tokens: int) -> Packs:
    """The samples, longest first, in packs of at most `max_tokens`; a longer one has a pack of its own."""
    packs: list[list[int]] = []
    room: list[int] = []
    for sample in share:
        fits = next((p for p, left in enumerate(room) if left >= lengths[sample]), None)
        if fits is None:
            packs.append([])
            room.append(max_tokens)
            fits = len(packs) - 1
        packs[fits].append(sample)
        room[fits] -= lengths[sample]
    return [tuple(pack) for pack in packs]


def _tokens(pack: Sequence[int], lengths: Mapping[int, int]) -> int:
    return sum(lengths[sample] for sample in pack)
