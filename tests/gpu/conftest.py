"""Small random models; tests that need more GPUs than there are are skipped."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import toy_models
from tests.gpu.running import EOS, VOCABULARY


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
    toy_models.save_qwen2(
        folder,
        seed,
        dtype=torch.bfloat16,
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
    )
    return folder
