"""kopf's settings that an outage or a fleet depends on."""

import copy
import itertools
from typing import Any

import kopf
import pytest

from simplerl_operator.handlers import kopf_settings


def test_a_watch_is_tried_again_without_end_and_without_haste() -> None:
    backoffs = kopf_settings().networking.error_backoffs
    assert not isinstance(backoffs, float)
    for _ in range(2):  # each request begins anew
        first = list(itertools.islice(backoffs, 1000))
        assert first[:6] == [1, 1, 2, 3, 5, 5]
        assert set(first[4:]) == {5}
    assert kopf_settings().watching.reconnect_backoff >= 1


def test_kopf_holds_no_object_for_long() -> None:
    # each object has a task that waits so long for its next event, and would never get hold of it within 0
    assert 0 < kopf_settings().queueing.idle_timeout <= 0.5


def test_kopf_copies_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(value: Any) -> Any:
        raise AssertionError(f"{type(value).__name__} is copied with each event of each object")

    body = kopf.Body({"metadata": {"name": "tiny", "labels": {"a": "b"}}, "spec": {"model": {"path": "/m"}}})
    kept = kopf_settings().persistence
    monkeypatch.setattr(copy, "deepcopy", copied)
    assert kept.diffbase_storage.build(body=body) == {}
