"""A whole run with a reward model, in which a rank and an engine share a slot and take turns."""

import json
from pathlib import Path

import pytest
from tests import toy_models
from tests.trainer import running

from simplerl_trainer.models.arithmetic_tokenizer import make_tokenizer, save_tokenizer

WEIGHT, FAILED = 0.1, -3.0


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random reward model that reads questions and answers of additions, and no more than 30 tokens of them."""
    folder = tmp_path_factory.mktemp("judge")
    model = toy_models.reward_model(
        "llama",
        0,
        vocab_size=make_tokenizer().get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=30,
        initializer_range=0.2,
    )
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.mark.long
def test_a_run_with_a_reward_model_on_one_slot(judge: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    reward = f"{{path: {judge}, template: '{{question}} {{response}}', failed: {FAILED}}}"
    settings = [
        "training.steps=2",
        "rollout.promptsPerStep=16",
        "training.trainBatchSize=64",
        "training.maxTokensPerMicroBatch=null",
        "training.gradientAccumulationSteps=2",
        "training.offload={optimizer: true}",
        "placement={colocated: {}}",
        "cluster={gpus: 1, gpusPerNode: 1, cpuOnly: true}",
        "checkpoint.everySteps=1",
        "evaluation.datasets[0].reasoningGym.size=32",
        "model.tiny.warmupAccuracy=0",
        f"rewards[1]={{name: judge, weight: {WEIGHT}, model: {reward}}}",
    ]
    ended = running.train(output, settings)
    assert ended.code == 0, ended.text
    lines = running.metrics(output)
    assert [line["step"] for line in lines] == [1, 2]
    for line in lines:
        assert line["reward"] == pytest.approx(line["reward_sum"] + WEIGHT * line["reward_judge"])
        assert line["mismatch_max"] < 1e-4
        samples = [
            json.loads(s)
            for s in (output / f"samples/step-{line['step']:06}.jsonl").read_text(encoding="utf-8").split("\n")
            if s
        ]
        failed = [s for s in samples if "judge" in s["failed"]]
        assert line["scoring_failures_judge"] == len(failed)
        assert all(s["rewards"]["judge"] == FAILED and "too long" in s["why"] for s in failed)
        assert len(failed) < len(samples), "some can be read"
        for s in samples:
            assert s["score"] == pytest.approx(s["rewards"]["sum"] + WEIGHT * s["rewards"]["judge"])
