"""Which models are taken, and what of their folders is used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.policy import model


@pytest.mark.parametrize(
    ("config", "max_tokens", "sentence"),
    [
        pytest.param(
            {"model_type": "gpt2"}, 64, "is of family gpt2, which is not supported: use one of Qwen2", id="GPT-2"
        ),
        pytest.param({"model_type": None}, 64, "is of family None", id="no family"),
        pytest.param(
            {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 0, "layer_types": None},
            64,
            "sliding window of 16 tokens, less than the 64 tokens",
            id="a window shorter than the samples",
        ),
        pytest.param({}, 4096, r"takes 128 tokens, less than data\.maxPromptTokens", id="a context too short"),
    ],
)
def test_a_model_that_is_not_supported_is_refused(
    config: dict[str, Any], max_tokens: int, sentence: str, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    original = json.loads((model_folder("qwen2 tied") / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(original | config))
    with pytest.raises(TrainerFailure, match=sentence) as caught:
        model.read_config(str(tmp_path), max_tokens)
    assert caught.value.reason is FailureReason.INVALID_INPUT


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainerFailure, match=r"config\.json cannot be read"):
        model.read_config(str(tmp_path), 64)


def test_numbers_that_make_no_model_are_refused(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    config = json.loads((model_folder("llama untied") / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_attention_heads": 3}))
    with pytest.raises(TrainerFailure, match=r"config\.json cannot be used \(.+ attention heads \(3\)\.\): mend it"):
        model.read_config(str(tmp_path), 64)


def test_a_folder_without_weights_is_refused(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copyfile(model_folder("llama untied") / "config.json", tmp_path / "config.json")
    with pytest.raises(TrainerFailure, match=r"lacks the tensor lm_head\.weight"):
        model.check_weights(str(tmp_path), model.read_config(str(tmp_path), 64))


def test_a_file_of_weights_that_was_cut_short_is_refused(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(model_folder("qwen2 tied"), tmp_path / "model")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-100])
    with pytest.raises(TrainerFailure, match=r"model\.safetensors cannot be read"):
        model.check_weights(str(folder), model.read_config(str(folder), 64))


@pytest.mark.parametrize("family", ["qwen2 tied", "qwen2 untied", "qwen3 tied", "llama untied"])
def test_weights_that_fit_are_taken(family: str, model_folder: Callable[[str], Path]) -> None:
    folder = str(model_folder(family))
    model.check_weights(folder, model.read_config(folder, 64))


def test_code_in_the_folder_is_not_run(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(model_folder("qwen2 tied"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('was run')")
    loaded = model.load_actor(str(folder), model.read_config(str(folder), 64), torch.float32)
    assert type(loaded.causal).__name__ == "Qwen2ForCausalLM"


def test_dropout_of_the_folder_is_not_used(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    config = json.loads((model_folder("llama untied") / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.5}))
    assert model.read_config(str(tmp_path), 64).attention_dropout == 0.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"num_hidden_layers": 3}, r"lacks the tensor model\.layers\.2", id="a layer is missing"),
        pytest.param({"num_hidden_layers": 1}, r"also holds the tensor model\.layers\.1", id="a layer too many"),
        pytest.param({"intermediate_size": 48}, r"another size of the tensor model\.layers\.0\.mlp", id="another size"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    change: dict[str, Any], sentence: str, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(model_folder("llama untied"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(TrainerFailure, match=sentence) as caught:
        model.check_weights(str(folder), model.read_config(str(folder), 64))
    assert caught.value.reason is FailureReason.INVALID_INPUT
