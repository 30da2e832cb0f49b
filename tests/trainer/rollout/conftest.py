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
from transformers import Qwen2Config, Qwen2ForCausalLM

torch.set_num_threads(1)

EOS = 1


@pytest.fixture(scope="session")
def qwen2(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a random Qwen2 (vocabulary of 300, head_dim 32) in a folder; the same arguments give the same model."""

    def make(tied: bool, seed: int = 0) -> Path:
        torch.manual_seed(seed)
        config = Qwen2Config(
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
            bos_token_id=2,
            pad_token_id=0,
        )
        model = Qwen2ForCausalLM(config)
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "norm.weight")):  # HF starts them at 0 and 1, which would hide a lost one
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        model.generation_config.update(
            do_sample=True, top_k=1, temperature=0.1
        )  # must not reach the rollout's sampling
        folder = tmp_path_factory.mktemp("model")
        model.save_pretrained(folder)
        return folder

    return make


@pytest.fixture
def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
