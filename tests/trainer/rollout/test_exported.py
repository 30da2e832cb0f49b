"""An exported folder in vLLM."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import shards
from simplerl_trainer.checkpoints.shards import MASTER, Saved, Shard
from simplerl_trainer.policy import weights
from simplerl_trainer.rollout.protocol import EngineSetup, Request
from simplerl_trainer.rollout.vllm_engine import VllmEngine

PROMPT = (5, 9, 200, 17)


@pytest.mark.long
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_vllm_draws_from_an_exported_folder_as_transformers_does(
    qwen2: Callable[..., Path], tmp_path: Path, tied: bool
) -> None:
    source = qwen2(tied=tied)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    trained = [
        Shard(f"causal.{name}", tuple(p.shape), 0, {MASTER: (p.detach() + 0.01).flatten()})
        for name, p in model.named_parameters()
    ]
    for rank in (0, 1):
        shards.write(tmp_path / "shards", shards.share(trained, rank, 2), rank, 2)
    weights.assemble(Saved(tmp_path / "shards"), Precision.FP32, source, tmp_path / "model", {})

    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype="auto")
    ids = torch.tensor([PROMPT])
    greedy = exported.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0)
    engine = VllmEngine()
    engine.start(EngineSetup(str(tmp_path / "model"), False, True, 48, 16, 512, 1.0, (), 0))
    try:
        engine.submit([Request(0, PROMPT, seed=0, temperature=0.0, max_new_tokens=8, logprobs=False)])
        deadline = time.monotonic() + 60
        while not (done := engine.finished(1.0)):
            assert time.monotonic() < deadline
    finally:
        engine.stop()
    assert done[0].token_ids == tuple(greedy[0, len(PROMPT) :].tolist())
