"""Whether a model can be shared out over the GPUs of an engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.models import sharding


def folder(path: Path, heads: int, kv_heads: int | None, hidden: int) -> Path:
    config = {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "intermediate_size": hidden}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("heads", "kv_heads", "hidden", "size"),
    [
        pytest.param(14, 2, 4864, 1, id="one GPU takes everything"),
        pytest.param(14, 2, 4864, 2, id="Qwen2.5-0.5B on two"),
        pytest.param(28, 4, 18944, 4, id="Qwen2.5-7B on four"),
        pytest.param(32, 4, 11008, 8, id="heads of keys and values stand twice"),
        pytest.param(8, None, 64, 8, id="as many heads of keys and values as of queries"),
    ],
)
def test_it_fits(tmp_path: Path, heads: int, kv_heads: int | None, hidden: int, size: int) -> None:
    sharding.check(folder(tmp_path, heads, kv_heads, hidden), size)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "hidden", "size", "sentence"),
    [
        (14, 2, 4864, 4, "the 14 attention heads of model folder {} cannot be dealt out evenly: use 1 or 2"),
        (12, 3, 64, 2, "the 3 heads of keys and values of model folder {} cannot be dealt out evenly: use 1"),
        (8, 8, 62, 4, "the 62 units of the hidden layers of model folder {} cannot be dealt out evenly: use 1 or 2"),
    ],
)
def test_it_does_not_fit(tmp_path: Path, heads: int, kv_heads: int, hidden: int, size: int, sentence: str) -> None:
    with pytest.raises(TrainerFailure) as failure:
        sharding.check(folder(tmp_path, heads, kv_heads, hidden), size)
    assert failure.value.reason is FailureReason.INVALID_INPUT
    assert failure.value.message == f"rollout.tensorParallelSize is {size}, over which " + sentence.format(tmp_path)


@pytest.mark.parametrize("numbers", [(14, "2", 64), (0, 2, 64), (14, -2, 64), (14, 2, None), ([14], 2, 64)], ids=str)
def test_what_is_no_number_is_named(tmp_path: Path, numbers: Any) -> None:
    with pytest.raises(
        TrainerFailure, match=f"model folder {tmp_path} has a config.json without a number .*: complete"
    ):
        sharding.check(folder(tmp_path, *numbers), 2)
