"""The weights by which tokens make a loss."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.spec.algorithm import Aggregation
from simplerl_trainer.algorithms.aggregation import token_weights

LIKE = torch.zeros(0, dtype=torch.float64)


def weights(lengths: list[int], aggregation: str, longest: int = 10) -> list[float]:
    found = token_weights(lengths, aggregation, tokens=sum(lengths), samples=len(lengths), longest=longest, like=LIKE)
    return found.tolist()


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        pytest.param(Aggregation.TOKEN, [0.25] * 4, id="every token counts alike"),
        pytest.param(Aggregation.SEQUENCE, [1 / 6] * 3 + [1 / 2], id="every response counts alike"),
        pytest.param(Aggregation.CONSTANT, [1 / 20] * 4, id="divided by samples x maxNewTokens"),
    ],
)
def test_two_responses_of_three_and_one_tokens(aggregation: str, expected: list[float]) -> None:
    assert weights([3, 1], aggregation) == pytest.approx(expected)


@pytest.mark.parametrize("aggregation", ["Token", "Sequence"])
@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_a_mean_over_everything_has_weights_of_sum_1(aggregation: str, lengths: list[int]) -> None:
    assert sum(weights(lengths, aggregation)) == pytest.approx(1)


@pytest.mark.parametrize("aggregation", list(Aggregation))
@given(lengths=st.lists(st.integers(1, 9), min_size=2, max_size=12), data=st.data())
def test_weights_do_not_depend_on_packs_or_ranks(aggregation: str, lengths: list[int], data: st.DataObject) -> None:
    """Faults 1 and 2 (verl#5625, verl#906, prime-rl#2562, OpenRLHF#1249, TRL#6024): a mean of each micro-batch's mean
    is another number than the mean over the optimizer step."""
    cut = data.draw(st.integers(1, len(lengths) - 1))
    parts = [
        token_weights(part, aggregation, tokens=sum(lengths), samples=len(lengths), longest=10, like=LIKE)
        for part in (lengths[:cut], lengths[cut:])
    ]
    assert torch.cat(parts).tolist() == weights(lengths, aggregation)


def test_an_empty_pack_has_no_weights() -> None:
    found = token_weights([], "Sequence", tokens=4, samples=2, longest=10, like=torch.zeros(0))
    assert (found.shape, found.dtype) == ((0,), torch.float32)


def test_another_aggregation_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="the loss aggregation is Mean: use Token, Sequence or Constant"):
        weights([1], "Mean")
