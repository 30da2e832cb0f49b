"""The KL coefficient that follows a target."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.algorithms.adaptive_kl import adapted


@pytest.mark.parametrize(
    ("kl", "samples", "expected"),
    [
        pytest.param(0.02, 100, 0.5, id="on target it stays"),
        pytest.param(0.021, 100, 0.5 * (1 + 0.05 * 0.1), id="a little above it grows by the error and the samples"),
        pytest.param(0.019, 100, 0.5 * (1 - 0.05 * 0.1), id="a little below it falls"),
        pytest.param(9.0, 100, 0.5 * (1 + 0.2 * 0.1), id="a great error counts as a fifth"),
        pytest.param(-1.0, 100, 0.5 * (1 - 0.2 * 0.1), id="an estimate may be negative"),
        pytest.param(0.0, 10_000, 0.5 * 0.2, id="a step of ten horizons does not turn the sign"),
        pytest.param(nan, 100, 0.5, id="nan changes nothing"),
        pytest.param(inf, 100, 0.5, id="infinity changes nothing"),
    ],
)
def test_one_step(kl: float, samples: int, expected: float) -> None:
    assert adapted(0.5, kl, target=0.02, horizon=1000, samples=samples) == pytest.approx(expected)


@given(
    coefficient=st.floats(1e-6, 100), kl=st.floats(-10, 1000), samples=st.integers(1, 10**6), target=st.floats(1e-3, 10)
)
def test_it_moves_towards_the_target_and_stays_positive(
    coefficient: float, kl: float, samples: int, target: float
) -> None:
    found = adapted(coefficient, kl, target, 10_000, samples)
    assert found > 0
    assert (found >= coefficient) if kl >= target else (found <= coefficient)
