"""Small random models of every family, and trajectories."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2ForSequenceClassification,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3ForSequenceClassification,
)

from simplerl_trainer.policy.protocol import Trajectory

VOCABULARY = 64
_FAMILIES: dict[str, tuple[type, type[PreTrainedModel], bool]] = {
    "qwen2 tied": (Qwen2Config, Qwen2ForCausalLM, True),
    "qwen2 untied": (Qwen2Config, Qwen2ForCausalLM, False),
    "qwen3 tied": (Qwen3Config, Qwen3ForCausalLM, True),
    "llama untied": (LlamaConfig, LlamaForCausalLM, False),
}

_CLASSIFIERS: dict[type[PreTrainedModel], type[PreTrainedModel]] = {
    Qwen2ForCausalLM: Qwen2ForSequenceClassification,
    Qwen3ForCausalLM: Qwen3ForSequenceClassification,
    LlamaForCausalLM: LlamaForSequenceClassification,
}


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A Hugging Face folder of a random model: two layers, grouped queries, 64 token ids."""
    root = tmp_path_factory.mktemp("models")
    torch.set_num_threads(1)

    def make(family: str) -> Path:
        folder = root / family.replace(" ", "-")
        if not folder.exists():
            save_model(family, folder)
        return folder

    return make


def save_model(family: str, folder: Path) -> None:
    """Writes the random model of a family, the same each time."""
    config, model_class = _config(family)
    torch.manual_seed(1)
    model_class(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A Hugging Face folder of a random reward model of the same size."""
    root = tmp_path_factory.mktemp("judges")
    torch.set_num_threads(1)

    def make(family: str) -> Path:
        folder = root / family.replace(" ", "-")
        if not folder.exists():
            config, model_class = _config(family)
            config.num_labels, config.pad_token_id = 1, 0
            torch.manual_seed(2)
            _CLASSIFIERS[model_class](config).save_pretrained(folder)
        return folder

    return make


def _config(family: str) -> tuple[Any, type[PreTrainedModel]]:
    config_class, model_class, tied = _FAMILIES[family]
    config = config_class(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        tie_word_embeddings=tied,
        initializer_range=0.2,
    )
    return config, model_class


@pytest.fixture(scope="session")
def trajectories() -> list[Trajectory]:
    """16 trajectories of 2 to 40 tokens in groups of four; the first four are on the probe."""
    rng = random.Random(3)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(VOCABULARY) for _ in range(count))

    return [
        Trajectory(
            sample_id=i,
            prompt_ids=tokens(rng.randint(1, 20)),
            response_ids=(response := tokens(rng.randint(1, 20))),
            score=float(rng.random() < 0.5),
            logprobs=tuple([-4.0] * len(response)) if i < 4 else None,
            group=i // 4,
        )
        for i in range(16)
    ]
