"""Attempts that write into the same folder."""

from pathlib import Path

import pytest

from simplerl_api.failures import EXIT_CODES, FailureReason, TrainerFailure
from simplerl_trainer.checkpoints.fence import Fence


def test_an_attempt_alone_may_write(tmp_path: Path) -> None:
    first = Fence(tmp_path / "run", 1)
    first.check()
    first.claim()
    first.check()
    Fence(tmp_path / "run", 1).claim()  # submitted again
    assert (tmp_path / "run/fence.json").read_text() == '{"attempt": 1}\n'


def test_an_older_attempt_stops_once_a_newer_one_has_claimed_the_folder(tmp_path: Path) -> None:
    older, newer = Fence(tmp_path, 2), Fence(tmp_path, 3)
    older.claim()
    newer.claim()
    newer.check()
    for write in (older.check, older.claim):
        with pytest.raises(TrainerFailure) as caught:
            write()
        assert caught.value.reason is FailureReason.SUPERSEDED
        assert caught.value.message == (f"attempt 3 writes into {tmp_path}: attempt 2 stops so as not to disturb it")
    newer.check()


def test_a_fence_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "fence.json").write_text("{}")
    with pytest.raises(TrainerFailure, match=r"fence\.json cannot be read .*: remove it if no other attempt runs"):
        Fence(tmp_path, 1).check()


def test_the_exit_codes_of_earlier_reasons_have_not_moved() -> None:
    assert EXIT_CODES[FailureReason.INVALID_INPUT] == 10
    assert EXIT_CODES[FailureReason.CHECKPOINT_FAILED] == 18
    assert EXIT_CODES[FailureReason.INTERNAL] == 20
    assert EXIT_CODES[FailureReason.SUPERSEDED] > 20
