"""The toy model and its tokenizer."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from simplerl_api import yaml12
from simplerl_api.spec.data import Fields, Questions, ReasoningGym
from simplerl_api.spec.model import TinyModel
from simplerl_trainer.data import questions
from simplerl_trainer.models import families
from simplerl_trainer.models.arithmetic_tokenizer import EOS, PAD, SIZE, make_tokenizer
from simplerl_trainer.models.folder import pack
from simplerl_trainer.models.tiny import additions, build, shown

ROOT = Path(__file__).parents[3]
TOKENIZER = make_tokenizer()


@given(st.text())
def test_any_text_can_be_encoded_and_comes_back(text: str) -> None:
    back = TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False)
    assert back == text


def test_a_question_is_short_and_numbers_up_to_99_are_tokens() -> None:
    assert TOKENIZER.encode("Calculate 10 + 3.").tokens == ["Calculate", "Ġ", "10", "Ġ+", "Ġ", "3", "."]
    assert TOKENIZER.encode(f"37{EOS}").tokens == ["37", EOS]
    assert TOKENIZER.encode("100").tokens == ["10", "0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "m"
    build(path, TinyModel(warmup_accuracy=0))
    return path


def test_the_folder_is_a_llama_that_everyone_may_read(folder: Path) -> None:
    found = families.read(folder)
    assert (found.family, found.vocab_size, found.stop_token_ids) == ("llama", SIZE, (TOKENIZER.token_to_id(EOS),))
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == model.get_input_embeddings().num_embeddings == SIZE
    for text in ("Calculate 10 + 3 + 0 + 7.", "57", "  3 apples,\n4 pears", "12345 é"):
        assert tokenizer(text)["input_ids"] == TOKENIZER.encode(text).ids
    assert model.dtype is torch.float32
    assert 600_000 < sum(p.numel() for p in model.parameters()) < 750_000
    assert model.config.hidden_size // model.config.num_attention_heads == 32
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.chat_template) == (EOS, PAD, None)
    assert {oct(p.stat().st_mode & 0o777) for p in folder.iterdir()} == {"0o644"}


def test_the_same_seed_gives_the_same_bytes_in_another_process(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simplerl_trainer.models.tiny", str(tmp_path / "m"), "0", "0"]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    assert pack(tmp_path / "m") == pack(folder)


def test_another_seed_gives_another_model_and_threads_are_left_alone(folder: Path, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    build(tmp_path / "m", TinyModel(seed=1, warmup_accuracy=0))
    assert pack(tmp_path / "m")["model.safetensors"] != pack(folder)["model.safetensors"]
    assert torch.get_num_threads() == threads


def test_half_of_the_additions_stay_unseen() -> None:
    every = list(additions())
    assert len(every) == 11**4
    assert sum(map(shown, every)) / len(every) == pytest.approx(0.5, abs=0.01)


def test_a_third_of_its_sampled_answers_are_right_and_most_of_its_likeliest(tmp_path: Path) -> None:
    gym = yaml12.load_file(ROOT / "examples/tiny.yaml")["spec"]["evaluation"]["datasets"][0]["reasoningGym"]
    asked = questions.load(Questions(reasoning_gym=ReasoningGym.model_validate(gym)), Fields(), "evaluation")
    build(tmp_path / "m", TinyModel())
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "m")
    torch.manual_seed(0)
    assert 0.25 <= accuracy(model, asked, do_sample=True) <= 0.40
    assert accuracy(model, asked, do_sample=False) >= 0.75


def accuracy(model: Any, asked: Sequence[questions.Question], *, do_sample: bool) -> float:
    ids = torch.tensor([TOKENIZER.encode(q.question).ids for q in asked])  # one length: every number is one token
    chosen = {"do_sample": True, "temperature": 1.0, "top_k": 0} if do_sample else {"do_sample": False}
    drawn = model.generate(ids, max_new_tokens=4, **chosen)
    texts = TOKENIZER.decode_batch(drawn[:, ids.shape[1] :].tolist(), skip_special_tokens=True)
    return sum(text == q.answer for text, q in zip(texts, asked, strict=True)) / len(asked)
