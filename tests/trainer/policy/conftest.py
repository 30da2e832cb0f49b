"""Small random models of every family, and trajectories."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import toy_models

from simplerl_trainer.policy.protocol import Trajectory

VOCABULARY = 64


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
    """Writes the random model of a family, `tied` or `untied`, the same each time."""
    name, tied = family.split()
    toy_models.language_model(name, 1, **_config(tied)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")


@pytest.fixture(scope="session")
def judge_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A Hugging Face folder of a random reward model of the same size."""
    root = tmp_path_factory.mktemp("judges")
    torch.set_num_threads(1)

    def make(family: str) -> Path:
        folder = root / family.replace(" ", "-")
        if not folder.exists():
            name, tied = family.split()
            toy_models.reward_model(name, 2, **_config(tied)).save_pretrained(folder)
        return folder

    return make


def _config(tied: str) -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "tie_word_embeddings": tied == "tied",
        "initializer_range": 0.2,
    }


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
