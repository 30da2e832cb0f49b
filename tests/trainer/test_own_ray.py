"""A Ray of our own: tried again where a busy machine is too slow for its fixed limit, otherwise a sentence at once."""

import pytest
import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import own_ray

SLOW = "The current node timed out during startup. This could happen because …"


@pytest.mark.parametrize(
    ("errors", "tries", "sentence"),
    [
        pytest.param([], 1, "", id="at once"),
        pytest.param([SLOW], 2, "", id="too slow once"),
        pytest.param(
            [SLOW] * 3, 3, "Ray did not start on this machine (The current node timed out", id="too slow always"
        ),
        pytest.param(["no room in /dev/shm"], 1, "Ray did not start on this machine (no room", id="something else"),
    ],
)
def test_ray_is_tried_again_where_it_was_too_slow(
    monkeypatch: pytest.MonkeyPatch, errors: list[str], tries: int, sentence: str
) -> None:
    told: list[str] = []

    def init(**_: object) -> None:
        told.append("init")
        if len(told) <= len(errors):
            raise Exception(errors[len(told) - 1])

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    if sentence:
        with pytest.raises(TrainerFailure) as caught:
            own_ray.start(2, cpu_only=True)
        assert caught.value.reason is FailureReason.TIMED_OUT
        assert caught.value.message.startswith(sentence)
    else:
        own_ray.start(2, cpu_only=True)
    assert len(told) == tries
