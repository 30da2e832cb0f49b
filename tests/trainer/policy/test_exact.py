"""In float64 no algorithm's gradient depends on packs, micro-batches or processes by more than rounding."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.trainer.policy import processes
from tests.trainer.policy.exact_process import PACKS
from tests.trainer.policy.rank_process import ALGORITHMS
from tests.trainer.policy.test_ranks import difference

from simplerl_trainer.policy.protocol import Trajectory

Found = dict[int, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def found(model_folder: Callable[[str], Path], trajectories: list[Trajectory]) -> Found:
    """By number of processes: what each of them found."""
    folder = model_folder("qwen2 tied").parent
    for other in ("qwen3 tied", "llama untied"):
        model_folder(other)
    torch.save(trajectories, folder / "trajectories.pt")
    processes.run(processes.groups("exact_process.py", folder))
    return {
        ranks: [torch.load(folder / f"exact-{ranks}-{r}.pt", weights_only=False) for r in range(ranks)]
        for ranks in (1, 2)
    }


@pytest.mark.parametrize("ranks", [1, 2], ids=["one process", "two processes"])
@pytest.mark.parametrize("tokens", PACKS, ids=[f"packs of {tokens}" for tokens in PACKS])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_gradients_are_the_same_to_eleven_digits(found: Found, name: str, tokens: int, ranks: int) -> None:
    plain = found[1][0][f"{name} 1000"]
    for process in found[ranks]:
        case = process[f"{name} {tokens}"]
        assert difference(case["gradients"], plain["gradients"]) < 1e-11
        assert case["advantages"] == pytest.approx(plain["advantages"], rel=1e-9, abs=1e-9)
        assert case["annotation"] == pytest.approx(plain["annotation"], rel=1e-6, nan_ok=True)
        assert case["annotation"]["kl"] != 0, "the reference model differs"


def test_packs_are_of_different_sizes_and_ratios_are_clipped(found: Found) -> None:
    packs = {tokens: found[1][0][f"grpo {tokens}"]["packs"] for tokens in PACKS}
    assert packs[1000] == 1
    assert packs[45] > packs[90] > 1
    assert all(found[1][0][f"{name} 1000"]["clipped"] > 0 for name in ALGORITHMS)
