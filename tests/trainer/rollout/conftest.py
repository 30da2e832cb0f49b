"""Toy models for real engines; the environment that vLLM needs on CPU."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    TORCH_COMPILE_DISABLE="1",
    HF_HUB_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    VLLM_LOGGING_LEVEL="ERROR",
    RAY_USAGE_STATS_ENABLED="0",
    RAY_AUTH_MODE="disabled",
    OMP_NUM_THREADS="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
)

import pytest
import torch
from tests import toy_models

torch.set_num_threads(1)

EOS = 1


@pytest.fixture(scope="session")
def qwen2(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a random Qwen2 (vocabulary of 300, head_dim 32) in a folder; the same arguments give the same model."""

    def make(tied: bool, seed: int = 0) -> Path:
        folder = tmp_path_factory.mktemp("model")
        toy_models.save_qwen2(
            folder,
            seed,
            vocab_size=300,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=512,
            tie_word_embeddings=tied,
            initializer_range=0.2,
            eos_token_id=EOS,
        )
        return folder

    return make


@pytest.fixture
def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
