"""vLLM's parameters in Hugging Face's names: it fuses some, for example q_proj, k_proj and v_proj into qkv_proj."""

from collections.abc import Mapping, Sequence

import torch

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"


def parts(model: torch.nn.Module, name: str) -> Sequence[str]:
    """Hugging Face names of what vLLM's parameter `name` holds, in the order of its rows."""
    *path, module, kind = name.split(".")
    fused: Mapping[str, Sequence[str]] = getattr(model, "packed_modules_mapping", {})
    return [".".join([*path, part, kind]) for part in fused.get(module, [module])]


def is_tied(model: torch.nn.Module) -> bool:
    """Whether the head computes with the embedding's weight."""
    own = dict(model.named_parameters(remove_duplicate=False))
    return own[HEAD] is own[EMBEDDING]


def wanted(model: torch.nn.Module) -> set[str]:
    """Hugging Face names of all parameters; without the head's where it is tied."""
    return {part for name, _ in model.named_parameters() for part in parts(model, name)}
