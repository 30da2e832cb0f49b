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
    assert sizes == [batch] * (len(lengths) // batch) + [len(lengths) % batch] * (len(lengths) % batch > 0)
    for b in plan:
        assert len(b) == ranks
        assert len({len(r) for r in b}) == 1, "every rank has the same number of packs"
        assert any(all(r) for r in b), "some rank needs them all"
        loads = [sum(lengths[s] for p in r for s in p) for r in b]
        assert max(loads) - min(loads) <= max(lengths.values()), "ranks differ by at most one sample"
        for r in b:
            filled = [sum(lengths[s] for s in p) for p in r]
            assert max(filled) <= max_tokens
            used = [f for f in filled if f]
            assert len(used) <= 1 or sum(used) > len(used) * max_tokens / 2, "packs are at least half full in the mean"


def test_the_seed_and_not_the_length_decides_the_batch() -> None:
    short_first = {i: 2 + i for i in range(40)}
    long_first = {i: 42 - i for i in range(40)}

    def batches(lengths: dict[int, int], seed: int) -> list[set[int]]:
        return [{s for r in b for p in r for s in p} for b in make_step_plan(lengths, 2, 10, 100, seed)]

    assert batches(short_first, 7) == batches(long_first, 7)
    assert batches(short_first, 7) != batches(short_first, 8)
    assert batches(dict(reversed(short_first.items())), 7) == batches(short_first, 7)


def test_a_sample_that_is_too_long_is_named() -> None:
    with pytest.raises(ValueError, match=r"sample 3 has 101 tokens, more than training\.maxTokensPerMicroBatch 100"):
        make_step_plan({1: 5, 3: 101}, 1, 2, 100, 0)
