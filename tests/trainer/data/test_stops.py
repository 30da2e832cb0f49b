"""Texts that end a response: each is one token."""

from pathlib import Path

import pytest
from tokenizers import AddedToken

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.data import stops
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.models.arithmetic_tokenizer import make_tokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    fast = make_tokenizer()
    fast.add_special_tokens(["<|im_end|>"])
    fast.add_tokens([AddedToken("</answer>")])
    fast.save(str(tmp_path / "tokenizer.json"))
    return Tokenizer(tmp_path)


def test_a_text_stands_for_its_id(tokenizer: Tokenizer) -> None:
    assert stops.ids([], tokenizer) == ()
    last = tokenizer.vocabulary - 1
    assert stops.ids(["</answer>", "<|im_end|>"], tokenizer) == (last, last - 1)


def test_the_vocabulary_counts_added_tokens(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocabulary == make_tokenizer().get_vocab_size() + 2


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["1 2"], "rollout.sampling.stop[0] is '1 2', which is 3 tokens of the model's tokenizer: give texts that are "
         "one token each, for example <|im_end|>"),
        (["</answer>", "</answer></answer>"], "rollout.sampling.stop[1] is '</answer></answer>', which is 2 tokens"),
    ],
)  # fmt: skip
def test_a_text_of_several_tokens_is_named(tokenizer: Tokenizer, texts: list[str], sentence: str) -> None:
    with pytest.raises(TrainerFailure) as failure:
        stops.ids(texts, tokenizer)
    assert failure.value.reason is FailureReason.INVALID_INPUT
    assert failure.value.message.startswith(sentence)
