"""The toy model's tokenizer, written down: each byte is a token, digits stand alone, and a few words are whole.

Texts are split as Qwen2's tokenizer splits them: transformers rebuilds that one for every model of this family,
whatever tokenizer.json says.
"""

import json
from itertools import accumulate, pairwise
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

PAD, EOS = "<pad>", "<eos>"
WORDS = (
    *("Calculate", "Compute", "Evaluate", "Solve", "What", "Answer", "Question"),
    *("Ġis", "Ġthe", "Ġof", "Ġand", "Ġ+", "Ġ-", "Ġ*", "Ġ/", "Ġ="),
)
"""Whole words in the byte-level alphabet, where Ġ is the space."""
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's: words with the sign before them, single digits, runs of signs, white space."""
SIZE = 320
"""Tokens in all: a multiple of 64, so that no engine pads the vocabulary with ids that have no token."""


def make_tokenizer() -> Tokenizer:
    """The tokenizer: `Calculate 23 + 34.` → Calculate ␣ 2 3 ␣+ ␣ 3 4 . (9 tokens); any text is encodable."""
    merges = list(dict.fromkeys(pair for word in WORDS for pair in pairwise_merges(word)))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = list(dict.fromkeys([PAD, EOS, *alphabet, *(left + right for left, right in merges)]))
    tokens += [f"<unused{i}>" for i in range(SIZE - len(tokens))]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
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
        "tokenizer_class": "Qwen2Tokenizer",
        "pad_token": PAD,
        "eos_token": EOS,
        "unk_token": PAD,  # never used; absent, transformers would add a token for it
        "clean_up_tokenization_spaces": False,
        "model_max_length": 512,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
