"""The estimate of activations against what autograd really keeps for the backward pass."""

import json
from pathlib import Path

import pytest
import torch
from tests import toy_models

from simplerl_api.memory import checkpoints, layer_activations
from simplerl_api.model_shape import shape_of
from simplerl_trainer.policy import model
from simplerl_trainer.policy.packing import make_pack
from simplerl_trainer.policy.protocol import Trajectory

CPU = torch.device("cpu")
LAYERS, TOKENS = 6, 512


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen2 whose layers are large against its vocabulary."""
    folder = tmp_path_factory.mktemp("models") / "deep"
    model = toy_models.language_model(
        "qwen2",
        0,
        vocab_size=8,
        hidden_size=64,
        intermediate_size=320,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    model.save_pretrained(folder)
    return folder


def kept(folder: Path, dtype: torch.dtype, checkpointing: bool) -> int:
    """Bytes that a forward pass over one sample keeps, weights not counted."""
    actor = model.load_actor(str(folder), model.read_config(str(folder), TOKENS), dtype)
    if checkpointing:
        model.checkpoint_layers(actor)
    actor.train()
    weights = {p.untyped_storage().data_ptr() for p in actor.parameters()}
    seen: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    sample = Trajectory(0, (1,) * TOKENS, (2,), 0.0, None, group=0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logprobs, _ = actor(make_pack([sample], CPU), 1.0)
    assert logprobs.requires_grad
    return sum(seen.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("checkpointing", [False, True], ids=["kept", "recomputed"])
def test_activations_are_as_estimated(folder: Path, dtype: torch.dtype, checkpointing: bool) -> None:
    shape = shape_of(json.loads((folder / "config.json").read_text()))
    found = kept(folder, dtype, checkpointing)
    layers = LAYERS * layer_activations(shape, dtype.itemsize, fused=False)
    estimated = checkpoints(shape, dtype.itemsize, fused=False) if checkpointing else layers
    assert found / TOKENS == pytest.approx(estimated, rel=0.15)
