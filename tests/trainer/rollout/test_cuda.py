"""What engines are told on CUDA; tests/gpu has the engines."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.rollout.cuda import capture_sizes


@pytest.mark.parametrize(
    ("sequences", "sizes"),
    [
        pytest.param(1, [1], id="one sequence"),
        pytest.param(8, [1, 2, 3, 4, 5, 6, 7, 8], id="few: each size"),
        pytest.param(256, [1, 2, 4, 8, *range(16, 257, 16)], id="many: powers of two, then steps"),
        pytest.param(100, [1, 2, 4, *range(7, 100, 7), 100], id="the largest is always there"),
    ],
)
def test_cuda_graphs_are_captured_for(sequences: int, sizes: Sequence[int]) -> None:
    assert capture_sizes(sequences) == sizes


@given(st.integers(1, 5000))
def test_a_batch_is_padded_by_at_most_a_sixteenth_of_the_largest(sequences: int) -> None:
    sizes = capture_sizes(sequences)
    assert sizes[0] == 1
    assert sizes[-1] == sequences
    assert len(sizes) <= 32
    assert all(b - a <= -(-sequences // 16) for a, b in pairwise(sizes))
