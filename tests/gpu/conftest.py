"""Small random models; tests that need more GPUs than there are are skipped."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.gpu.running import EOS, VOCABULARY
from transformers import Qwen2Config, Qwen2ForCausalLM


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    count = torch.cuda.device_count()
    for item in items:
        if folder in item.path.parents:
            wanted = item.get_closest_marker("gpu")
            needs = wanted.args[0] if wanted and wanted.args else 1
            if count < needs:
                item.add_marker(pytest.mark.skip(reason=f"needs {needs} CUDA GPUs, this machine has {count}"))
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def qwen2(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a random Qwen2 (head_dim 64, three layers) in a folder; the same arguments give the same model."""
    made: dict[tuple[bool, int], Path] = {}

    def make(tied: bool, seed: int = 0) -> Path:
        if (tied, seed) not in made:
            made[tied, seed] = _qwen2(tmp_path_factory.mktemp("model"), tied, seed)
        return made[tied, seed]

    return make


def _qwen2(folder: Path, tied: bool, seed: int) -> Path:
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=tied,
        initializer_range=0.08,
        eos_token_id=EOS,
        bos_token_id=2,
        pad_token_id=0,
    )
    model = Qwen2ForCausalLM(config)
    for name, parameter in model.named_parameters():
        if name.endswith(("bias", "norm.weight")):  # HF starts them at 0 and 1, which would hide a lost one
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder
