"""The toy model's tokenizer, written down: each byte is a token; numbers up to 99 and a few words are whole."""

import json
from itertools import accumulate, pairwise
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

PAD, EOS = "<pad>", "<eos>"
WORDS = (
    *("Calculate", "Compute", "Evaluate", "Solve", "What", "Answer", "Question"),
    *("Ġis", "Ġthe", "Ġof", "Ġand", "Ġ+", "Ġ-", "Ġ*", "Ġ/", "Ġ="),
)
"""Whole words in the byte-level alphabet, where Ġ is the space."""
NUMBERS = tuple((str(tens), str(ones)) for tens in range(1, 10) for ones in range(10))
"""The merges that make 10 to 99 whole: every term and sum of the toy's additions is one token."""
SIZE = 448
"""Tokens in all: a multiple of 64, so that no engine pads the vocabulary with ids that have no token."""


def make_tokenizer() -> Tokenizer:
    """The tokenizer: `Calculate 3 + 10.` → Calculate ␣ 3 ␣+ ␣ 10 . (7 tokens); any text is encodable."""
    merges = list(dict.fromkeys([*(pair for word in WORDS for pair in pairwise_merges(word)), *NUMBERS]))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = list(dict.fromkeys([PAD, EOS, *alphabet, *(left + right for left, right in merges)]))
    tokens += [f"<unused{i}>" for i in range(SIZE - len(tokens))]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([PAD, EOS])
    return tokenizer


def pairwise_merges(word: str) -> list[tuple[str, str]]:
    """The merges that build a word from its left: `abc` → (a, b), (ab, c)."""
    return [(left, whole[len(left) :]) for left, whole in pairwise(accumulate(word))]


def save_tokenizer(folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json, which AutoTokenizer reads."""
    make_tokenizer().save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "TokenizersBackend",  # transformers' name for tokenizer.json as it is
        "pad_token": PAD,
        "eos_token": EOS,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 512,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
