"""The toy model and its tokenizer."""

import subprocess
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from simplerl_api.spec.data import Fields, Questions, ReasoningGym
from simplerl_api.spec.model import TinyModel
from simplerl_trainer.data import questions
from simplerl_trainer.models import families
from simplerl_trainer.models.arithmetic_tokenizer import EOS, PAD, SIZE, make_tokenizer
from simplerl_trainer.models.folder import pack
from simplerl_trainer.models.tiny import build, pairs, shown

TOKENIZER = make_tokenizer()


@given(st.text())
def test_any_text_can_be_encoded_and_comes_back(text: str) -> None:
    back = TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False)
    assert back == unicodedata.normalize("NFC", text)


def test_a_question_is_short_and_each_digit_is_a_token() -> None:
    assert TOKENIZER.encode("Calculate 100 + 23.").tokens == [
        "Calculate", "Ġ", "1", "0", "0", "Ġ+", "Ġ", "2", "3", ".",
    ]  # fmt: skip
    assert TOKENIZER.encode(f"123{EOS}").ids[-1] == TOKENIZER.token_to_id(EOS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "m"
    build(path, TinyModel(warmup_steps=3))
    return path


def test_the_folder_is_a_qwen2_that_everyone_may_read(folder: Path) -> None:
    found = families.read(folder)
    assert (found.family, found.vocab_size, found.stop_token_ids) == ("qwen2", SIZE, (TOKENIZER.token_to_id(EOS),))
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == model.get_input_embeddings().num_embeddings == SIZE
    for text in ("Calculate 23 + 34.", "57", "  3 apples,\n4 pears"):
        assert tokenizer(text)["input_ids"] == TOKENIZER.encode(text).ids
    assert model.dtype is torch.float32
    assert 600_000 < sum(p.numel() for p in model.parameters()) < 750_000
    assert model.config.hidden_size // model.config.num_attention_heads == 32
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.chat_template) == (EOS, PAD, None)
    assert {oct(p.stat().st_mode & 0o777) for p in folder.iterdir()} == {"0o644"}


def test_the_same_seed_gives_the_same_bytes_in_another_process(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simplerl_trainer.models.tiny", str(tmp_path / "m"), "0", "3"]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    assert pack(tmp_path / "m") == pack(folder)


def test_another_seed_gives_another_model_and_threads_are_left_alone(folder: Path, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    build(tmp_path / "m", TinyModel(seed=1, warmup_steps=0))
    assert pack(tmp_path / "m")["model.safetensors"] != pack(folder)["model.safetensors"]
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("top", [10, 100])
def test_a_quarter_of_the_additions_stays_unseen(top: int) -> None:
    every = list(pairs(top))
    assert len(every) == (top + 1) ** 2
    assert sum(shown(a, b) for a, b in every) / len(every) == pytest.approx(0.75, abs=0.03)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_third_of_its_sampled_answers_are_right(tmp_path: Path, seed: int) -> None:
    config = {
        "min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2, "operators": ["+"],
        "allow_parentheses": False, "allow_negation": False, "format_style": "simple",
    }  # fmt: skip
    gym = ReasoningGym(dataset="basic_arithmetic", size=400, seed=2, config=config)
    asked = questions.load(Questions(reasoning_gym=gym), Fields(), "data.train")
    build(tmp_path / "m", TinyModel(seed=seed))
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "m")
    torch.manual_seed(0)
    by_length = defaultdict(list)
    for q in asked:
        by_length[len(TOKENIZER.encode(q.question).ids)].append(q)
    right = 0
    for same in by_length.values():
        ids = torch.tensor([TOKENIZER.encode(q.question).ids for q in same]).repeat(5, 1)  # (5 x questions, length)
        drawn = model.generate(ids, do_sample=True, temperature=1.0, top_k=0, max_new_tokens=8)
        texts = TOKENIZER.decode_batch(drawn[:, ids.shape[1] :].tolist(), skip_special_tokens=True)
        right += sum(text == q.answer for text, q in zip(texts, same * 5, strict=True))
    assert 0.28 <= right / (5 * len(asked)) <= 0.40
