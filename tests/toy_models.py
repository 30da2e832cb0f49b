"""Small random models of the supported families, as Hugging Face folders: the same arguments give the same model."""

from pathlib import Path
from typing import Any

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

_FAMILIES: dict[str, tuple[type, type[PreTrainedModel], type[PreTrainedModel]]] = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, Qwen3ForSequenceClassification),
    "llama": (LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification),
}


def language_model(family: str, seed: int, **config: Any) -> PreTrainedModel:
    """A language model; `config` are a config.json's numbers."""
    config_class, model_class, _ = _FAMILIES[family]
    torch.manual_seed(seed)
    model: PreTrainedModel = model_class(config_class(**config))
    return model


def reward_model(family: str, seed: int, **config: Any) -> PreTrainedModel:
    """A sequence classifier of one label."""
    config_class, _, model_class = _FAMILIES[family]
    torch.manual_seed(seed)
    model: PreTrainedModel = model_class(config_class(**config, num_labels=1, pad_token_id=0))
    return model


def save_qwen2(folder: Path, seed: int, *, dtype: torch.dtype = torch.float32, **config: Any) -> None:
    """A Qwen2 for real engines, of which every parameter tells, and whose own settings of sampling mislead."""
    model = language_model("qwen2", seed, bos_token_id=2, pad_token_id=0, **config)
    for name, parameter in model.named_parameters():
        if name.endswith(("bias", "norm.weight")):  # HF starts them at 0 and 1, which would hide a lost one
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    # must not reach the rollout's sampling
    model.generation_config.update(do_sample=True, top_k=1, temperature=0.1)
    model.to(dtype).save_pretrained(folder)
