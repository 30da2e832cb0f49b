"""Engines and ranks in float32; a file of its own, since the processes of test_slot.py live until that file's end."""

from collections.abc import Callable
from pathlib import Path

from tests.gpu.running import started


def test_float32_engines_agree_with_float32_ranks(qwen2: Callable[..., Path], tmp_path: Path) -> None:
    with started(tmp_path, qwen2(tied=True), training={"precision": "FP32"}) as slot:
        slot.sync(1)
        metrics = slot.annotate(slot.draw(64)).metrics
        # vLLM's attention in float32 multiplies in TF32: 0.005 nats were seen
        assert metrics["mismatch_max"] < 2e-2
        assert not any(u.skipped for u in slot.update())
