"""Reward models: packed scores equal those of transformers on single rows, and join the samples' own scores."""

from collections.abc import Callable
from math import isnan, nan
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.policy import judges, model, reward_model
from simplerl_trainer.policy.protocol import JudgeSetup

CPU = torch.device("cpu")
TEXTS = [(1, 2, 3), (4,), (), (5, 6, 7, 8, 9, 10, 11), (12, 13), (14, 15, 16)]


def loaded(folder: Path) -> reward_model.RewardModel:
    config = model.read_config(str(folder), 1, "rewards[0].model.path")
    model.check_weights(str(folder), config, "rewards[0].model.path", AutoModelForSequenceClassification)
    return model.load_reward_model(str(folder), config, torch.float32)


@pytest.mark.parametrize("family", ["qwen2 tied", "qwen3 tied", "llama untied"])
def test_packed_scores_equal_those_of_single_rows(family: str, judge_folder: Callable[[str], Path]) -> None:
    folder = judge_folder(family)
    plain = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    found = reward_model.score(loaded(folder), TEXTS, 100, lambda packs: packs, CPU)
    for text, number in zip(TEXTS, found, strict=True):
        if text:
            with torch.no_grad():
                assert number == pytest.approx(plain(torch.tensor([text])).logits.item(), abs=1e-5)
        else:
            assert isnan(number), "an empty text has no score"
    assert len({round(n, 3) for n in found if not isnan(n)}) > 3, "they differ"


@pytest.mark.parametrize(
    ("tokens", "sizes"),
    [
        pytest.param(100, [16], id="all in one"),
        pytest.param(8, [8, 8], id="several"),
        pytest.param(3, [7, 3, 3, 3], id="a text that is longer than a pack stands alone"),
    ],
)
def test_packs_keep_to_the_tokens(tokens: int, sizes: list[int]) -> None:
    seen: list[int] = []

    def run(pack: reward_model.TextPack) -> torch.Tensor:
        seen.append(pack.ids.numel())
        assert int(pack.layout.cu_seqlens[-1]) == pack.ids.numel()
        starts = pack.layout.cu_seqlens[:-1].long()
        return pack.ids[0, starts].float()

    found = reward_model.score(run, TEXTS, tokens, lambda packs: packs, CPU)
    assert seen == sizes
    assert [n for n in found if not isnan(n)] == [1, 4, 5, 12, 14], "each text has its own score"


def test_a_rank_with_fewer_packs_runs_as_often_as_the_others() -> None:
    calls = 0

    def run(pack: reward_model.TextPack) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return torch.zeros(len(pack.layout.cu_seqlens) - 1)

    assert reward_model.score(run, [], 100, lambda packs: packs + 3, CPU) == []
    assert calls == 3


def test_the_weighted_sum_takes_the_documented_value_for_a_score_that_is_none() -> None:
    setups = [JudgeSetup("a", "/a", "rewards[0]", 2.0, -1.0), JudgeSetup("b", "/b", "rewards[1]", 0.5, 0.25)]
    assert judges.total(setups, [3.0, 4.0]) == 8.0
    assert judges.total(setups, [nan, 4.0]) == 0.0
    assert judges.total(setups, [float("inf"), float("-inf")]) == -2.0 + 0.125


def test_a_language_model_is_no_reward_model(model_folder: Callable[[str], Path]) -> None:
    folder = str(model_folder("qwen2 untied"))
    config = model.read_config(folder, 1, "rewards[0].model.path")
    sentence = r"^rewards\[0\]\.model\.path: .* lacks the tensor score\.weight: give a folder whose weights fit"
    with pytest.raises(TrainerFailure, match=sentence):
        model.check_weights(folder, config, "rewards[0].model.path", AutoModelForSequenceClassification)
