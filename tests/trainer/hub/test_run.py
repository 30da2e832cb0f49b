"""A whole run whose model and questions come from a hub on this machine."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests import toy_models
from tests.trainer import running
from tests.trainer.hub.server import TOKEN, serving

from simplerl_api.spec.model import TinyModel
from simplerl_trainer.models import folder, tiny, tiny_shape
from simplerl_trainer.models.arithmetic_tokenizer import save_tokenizer

ROWS = [{"question": f"Calculate {a} + {b} + 1 + 2.", "answer": a + b + 3} for a in range(6) for b in range(6)]
SETTINGS = [
    "model={hub: {name: org/tiny}}",
    "data.train={hub: {name: org/sums}}",
    "evaluation.datasets=[{name: held-out, hub: {name: org/sums, split: 'train[:4]'}}]",
    "rollout={promptsPerStep: 8, samplesPerPrompt: 8, sampling: {maxNewTokens: 8}}",
    "training.trainBatchSize=64",
    "training.steps=1",
    "rewards[1]={name: style, weight: 0.5, model: {hub: {name: org/judge}, template: '{question}{response}'}}",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    path = tmp_path_factory.mktemp("hub") / "tiny"
    tiny.build(path, TinyModel(warmup_accuracy=0))
    return folder.pack(path)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    path = tmp_path_factory.mktemp("hub") / "judge"
    toy_models.reward_model("llama", 0, **tiny_shape.SHAPE).save_pretrained(path)
    save_tokenizer(path)
    return folder.pack(path)


@pytest.mark.long
def test_a_run_with_a_private_model_and_its_later_attempt(
    tmp_path: Path, model: Mapping[str, bytes], judge: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "run"
    with serving() as hub:
        repository = hub.add("model", "org/tiny", model, private=True)
        hub.add("model", "org/judge", judge, private=True)
        hub.add("dataset", "org/sums", {"train.jsonl": "".join(json.dumps(r) + "\n" for r in ROWS).encode()})
        variables = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "cache"),
            "HF_TOKEN": TOKEN,
            "HF_HUB_OFFLINE": "0",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        ended = running.train(output, SETTINGS)
        assert ended.code == 0, ended.text
        first = repository.refs["main"]
        assert json.loads((output / "inputs.json").read_text())["model"] == {
            "source": "hub org/tiny main", "commit": first
        }  # fmt: skip
        assert len(hub.downloads(".safetensors")) == 2
        (step,) = running.metrics(output)
        assert step["reward_style"] != 0
        assert step["scoring_failures_style"] == 0
        assert step["reward"] == pytest.approx(step["reward_sum"] + 0.5 * step["reward_style"])

        repository.commit({**model, "config.json": b"{}"})  # the main branch moves on, to a model that is none
        hub.asked.clear()
        again = running.train(output, SETTINGS)
        assert again.code == 0, again.text
        assert not hub.downloads(".safetensors")
        assert not [path for _, path, _ in hub.asked if repository.refs["main"] in path]
        assert not running.events(output, "inputs differ from those of the first start")
    files = [f for f in output.rglob("*") if f.suffix in (".json", ".jsonl", ".log")]
    assert TOKEN not in again.text + "".join(f.read_text(encoding="utf-8") for f in files)
