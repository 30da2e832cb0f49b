"""Buckets: bounded, in order, of one type. Fault 21 (ms-swift#7986, TRL#6386): a whole model gathered at once."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from simplerl_trainer.weights.buckets import LIMIT, Parameter, make_buckets

parameters = st.lists(
    st.builds(
        Parameter,
        name=st.uuids().map(str),
        dtype=st.sampled_from(["float32", "bfloat16"]),
        shape=st.lists(st.integers(1, 40), max_size=3).map(tuple),
    ),
    max_size=40,
)


@given(parameters, st.integers(1, 5000))
def test_every_parameter_is_in_one_bucket_of_its_type_and_none_is_larger_than_it_must_be(
    parameters: list[Parameter], limit: int
) -> None:
    buckets = make_buckets(parameters, limit)
    assert [p for b in buckets for p in b.parameters] == parameters
    for bucket in buckets:
        assert {p.dtype for p in bucket.parameters} == {bucket.dtype}
        assert bucket.nbytes <= limit or len(bucket.parameters) == 1
    for before, after in pairwise(buckets):
        assert before.dtype != after.dtype or before.nbytes + after.parameters[0].nbytes > limit


def test_a_model_of_seven_billion_travels_in_pieces_of_half_a_gibibyte() -> None:
    layers = [Parameter(f"layers.{n}.{part}", "bfloat16", (3584, 18944)) for n in range(28) for part in range(3)]
    embedding = Parameter("embedding", "bfloat16", (152064, 3584))  # larger than a bucket should be
    first, *others = make_buckets([embedding, *layers])
    assert first.parameters == (embedding,)
    assert max(b.nbytes for b in others) <= LIMIT
