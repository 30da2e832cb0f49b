"""The step plan: which sample is trained in which optimizer batch, on which rank, in which pack. A pure function."""

import random
from collections.abc import Mapping, Sequence

from simplerl_trainer.policy.protocol import StepPlan


def make_step_plan(
    lengths: Mapping[int, int], ranks: int, train_batch_size: int, max_tokens: int, seed: int
) -> StepPlan:
    """The plan of one step: [optimizer batch][rank][pack] -> sample ids.

    `lengths` has the tokens (prompt and response) of each sample by its id. Samples are dealt to optimizer batches at
    random, by `seed` and never by length; the last batch is smaller where `train_batch_size` does not divide them.
    Inside a batch the longest samples are placed first, each on the rank with the fewest tokens, so that the ranks
    differ by at most one sample's tokens; a rank's samples are packed first-fit into packs of at most `max_tokens`
    tokens. All ranks have the same number of packs in a batch, since each forward pass is collective under ZeRO-3:
    ranks with fewer get empty ones.

    Raises ValueError naming a sample that is longer than `max_tokens`.
    """
    for sample, length in lengths.items():
        if length > max_tokens:
            raise ValueError(
                f"sample {sample} has {length} tokens, more than training.maxTokensPerMicroBatch {max_tokens}: raise it"
            )
    ids = sorted(lengths)
    random.Random(seed).shuffle(ids)
    return tuple(
        _same_number(
            [_packs(share, lengths, max_tokens) for share in _shares(ids[at:][:train_batch_size], lengths, ranks)]
        )
        for at in range(0, len(ids), train_batch_size)
    )


def _shares(batch: Sequence[int], lengths: Mapping[int, int], ranks: int) -> Sequence[Sequence[int]]:
    """The samples of each rank, longest first (https://en.wikipedia.org/wiki/Longest-processing-time-first_scheduling)."""
    shares: list[list[int]] = [[] for _ in range(ranks)]
    tokens = [0] * ranks
    for sample in sorted(batch, key=lambda s: -lengths[s]):
        least = min(range(ranks), key=lambda r: (tokens[r], len(shares[r])))
        shares[least].append(sample)
        tokens[least] += lengths[sample]
    return shares


def _packs(share: Sequence[int], lengths: Mapping[int, int], max_tokens: int) -> Sequence[tuple[int, ...]]:
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


def _same_number(ranks: Sequence[Sequence[tuple[int, ...]]]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    most = max(len(packs) for packs in ranks)
    return tuple((*packs, *[()] * (most - len(packs))) for packs in ranks)
