"""The step plan: every sample once, bounded packs, equal numbers of passes, balanced ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.policy.step_plan import make_step_plan

LONGEST = 50


@given(
    lengths=st.dictionaries(st.integers(0, 10_000), st.integers(2, LONGEST), min_size=1, max_size=120),
    ranks=st.integers(1, 5),
    batch=st.integers(1, 60),
    max_tokens=st.integers(LONGEST, 200),
    seed=st.integers(0, 2**31 - 1),
)
def test_any_plan(lengths: dict[int, int], ranks: int, batch: int, max_tokens: int, seed: int) -> None:
    plan = make_step_plan(lengths, ranks, batch, max_tokens, seed)
    everything = [s for b in plan for r in b for p in r for s in p]
    assert sorted(everything) == sorted(lengths), "every sample is in exactly one pack"
    sizes = [sum(len(p) for r in b for p in r) for b in plan]
    assert len(sizes) == -(-len(lengths) // batch)
    assert max(sizes) <= batch
    assert max(sizes) - min(sizes) <= 1, "batches are of nearly the same size"
    for b in plan:
        assert len(b) == ranks
        assert len({len(r) for r in b}) == 1, "every rank has the same number of packs"
        assert any(all(r) for r in b), "some rank needs them all"
        loads = [sum(lengths[s] for p in r for s in p) for r in b]
        assert max(loads) - min(loads) <= max(lengths.values()), "ranks differ by at most one sample"
        for r in b:
            filled = [sum(lengths[s] for s in p) for p in r]
            assert max(filled) <= max_tokens
            assert filled == sorted(filled, reverse=True), "ranks meet with their fullest packs"
        fullest = [sum(lengths[s] for p in r for s in p) for r in b]
        assert len(b[0]) == 1 or max(fullest) > len(b[0]) * max_tokens / 2, "packs are at least half full in the mean"


@given(
    lengths=st.dictionaries(st.integers(0, 10_000), st.integers(2, LONGEST), min_size=1, max_size=80),
    ranks=st.integers(1, 4),
    batch=st.integers(1, 60),
    micro_batches=st.integers(1, 7),
)
def test_any_plan_by_gradient_accumulation_steps(
    lengths: dict[int, int], ranks: int, batch: int, micro_batches: int
) -> None:
    plan = make_step_plan(lengths, ranks, batch, None, 1, micro_batches)
    by_budget = make_step_plan(lengths, ranks, batch, LONGEST, 1)
    assert sorted(s for b in plan for r in b for p in r for s in p) == sorted(lengths)
    for b, other in zip(plan, by_budget, strict=True):
        assert [len(r) for r in b] == [micro_batches] * ranks, "each rank makes as many as were asked for"
        for r, same in zip(b, other, strict=True):
            assert {s for p in r for s in p} == {s for p in same for s in p}, "the bound moves no sample elsewhere"
            filled = [sum(lengths[s] for s in p) for p in r]
            assert max(filled) - min(filled) <= max(lengths.values()), "micro-batches differ by at most one sample"


def test_ranks_with_room_fill_their_packs_evenly() -> None:
    """A pass is as slow as its longest pack: two of 60 are better than one of 90 and one of 30."""
    plan = make_step_plan({0: 60, 1: 60, 2: 30, 3: 30, 4: 30, 5: 30}, 2, 6, 100, 0)
    assert [[sum((60, 60, 30, 30, 30, 30)[s] for s in p) for p in r] for r in plan[0]] == [[60, 60], [60, 60]]


def test_the_seed_and_not_the_length_decides_the_batch() -> None:
    short_first = {i: 2 + i for i in range(40)}
    long_first = {i: 42 - i for i in range(40)}

    def batches(lengths: dict[int, int], seed: int) -> list[set[int]]:
        return [{s for r in b for p in r for s in p} for b in make_step_plan(lengths, 2, 10, 100, seed)]

    assert batches(short_first, 7) == batches(long_first, 7)
    assert batches(short_first, 7) != batches(short_first, 8)
    assert batches(dict(reversed(short_first.items())), 7) == batches(short_first, 7)


def test_without_samples_there_are_no_batches() -> None:
    assert make_step_plan({}, 2, 8, 100, 0) == ()


def test_a_sample_that_is_too_long_is_named() -> None:
    with pytest.raises(ValueError, match=r"sample 3 has 101 tokens, more than training\.maxTokensPerMicroBatch 100"):
        make_step_plan({1: 5, 3: 101}, 1, 2, 100, 0)
