"""The soft penalty for long responses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.algorithms.overlong import overlong_penalty


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        pytest.param(1, 0.0, id="a short response"),
        pytest.param(80, 0.0, id="the last length without a penalty"),
        pytest.param(81, -0.1, id="the first with one"),
        pytest.param(90, -1.0, id="half the buffer, half the penalty"),
        pytest.param(100, -2.0, id="maxNewTokens"),
        pytest.param(130, -2.0, id="beyond, as an evaluation with other limits may be"),
    ],
)
def test_a_buffer_of_20_before_100_tokens(length: int, expected: float) -> None:
    assert overlong_penalty(length, longest=100, buffer=20, penalty=2.0) == pytest.approx(expected)


@given(length=st.integers(1, 300), longest=st.integers(1, 200), data=st.data())
def test_it_never_grows_with_the_length_and_never_exceeds_its_bound(
    length: int, longest: int, data: st.DataObject
) -> None:
    buffer = data.draw(st.integers(1, longest))
    here, longer = (overlong_penalty(n, longest, buffer, 1.5) for n in (length, length + 1))
    assert -1.5 <= longer <= here <= 0
