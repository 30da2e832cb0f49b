"""The order of questions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.data.cursor import Cursor, permutation, restore

GOLDEN = [2, 9, 3, 7, 4, 5, 1, 6, 0, 8, 4, 7, 0, 1, 5, 2, 6, 9, 3, 8, 2, 8, 3, 0, 7]
SEEDS, SIZES = st.integers(0, 2**31 - 1), st.integers(1, 60)


@given(SEEDS, st.integers(0, 5), SIZES)
def test_an_epoch_is_a_permutation(seed: int, epoch: int, size: int) -> None:
    assert sorted(permutation(seed, epoch, size)) == list(range(size))


@given(SEEDS, SIZES, st.lists(st.integers(0, 100), max_size=8))
def test_how_much_is_taken_at_once_does_not_matter(seed: int, size: int, counts: list[int]) -> None:
    cursor, taken = Cursor(seed, size), []
    for count in counts:
        positions, cursor = cursor.take(count)
        assert len(positions) == count
        taken += positions
    assert taken == Cursor(seed, size).take(sum(counts))[0]
    for start in range(0, len(taken) - size + 1, size):
        assert sorted(taken[start : start + size]) == list(range(size))


@given(SEEDS, SIZES, st.integers(0, 200), st.integers(0, 200))
def test_a_saved_cursor_goes_on_where_it_was(seed: int, size: int, before: int, after: int) -> None:
    _, cursor = Cursor(seed, size).take(before)
    again = restore(json.loads(json.dumps(cursor.document())), seed, size)
    assert again == cursor
    assert again.take(after) == cursor.take(after)


@given(SEEDS, SIZES, st.lists(st.integers(0, 90), min_size=1, max_size=6))
def test_a_run_that_is_resumed_after_every_step_takes_what_one_that_never_stops_takes(
    seed: int, size: int, steps: list[int]
) -> None:
    # fault 31 (OpenRLHF#1103, prime-rl#3164, #3332): the position in the data was lost
    whole, resumed = Cursor(seed, size), Cursor(seed, size)
    for count in steps:
        expected, whole = whole.take(count)
        found, resumed = restore(json.loads(json.dumps(resumed.document())), seed, size).take(count)
        assert found == expected
    assert resumed == whole


@given(SEEDS, SIZES, st.integers(1, 5))
def test_an_epoch_s_end_is_the_next_one_s_start(seed: int, size: int, epochs: int) -> None:
    # fault 30 (verl#5725): a run that was resumed at an epoch's end did no step
    _, cursor = Cursor(seed, size).take(epochs * size)
    assert (cursor.epoch, cursor.position) == (epochs, 0)
    again = restore(cursor.document(), seed, size)
    taken, after = again.take(1)
    assert taken == [permutation(seed, epochs, size)[0]]
    assert (after.epoch, after.position) == ((epochs + 1, 0) if size == 1 else (epochs, 1))


@given(SEEDS, SIZES, st.integers(0, 300))
def test_no_question_is_asked_twice_before_all_were_asked(seed: int, size: int, count: int) -> None:
    taken, cursor = Cursor(seed, size).take(count)
    times = [taken.count(i) for i in range(size)]
    assert max(times) - min(times) <= 1
    assert cursor.epoch * size + cursor.position == count


def test_the_order_is_the_same_for_ever() -> None:
    assert Cursor(42, 10).take(25)[0] == GOLDEN


def test_epochs_and_seeds_differ() -> None:
    orders = {permutation(seed, epoch, 50) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9


def test_another_order_s_cursor_is_refused() -> None:
    sentence = (
        "the checkpoint stands in 10 prompts in the order of seed 1, but this run has 11 prompts and training.seed 1: "
        "give the same data and seed"
    )
    with pytest.raises(TrainerFailure, match=sentence):
        restore(Cursor(1, 10).document(), 1, 11)
