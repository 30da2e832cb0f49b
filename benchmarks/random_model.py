"""A language model of Qwen2-0.5B's shape with random weights, where no real one can be had.

    python benchmarks/random_model.py FOLDER QUESTIONS.jsonl [--layers N]

494,032,768 parameters in bfloat16, a tied head, and a tokenizer of 151,936 entries: byte-level BPE trained on the
questions, the rest filled up, with a chat template. Random weights hardly ever draw the end of a sequence, so that
responses have their full length.
"""

import argparse
import json
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen2Config, Qwen2ForCausalLM

VOCABULARY = 151_936
LEARNED = 8_000
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def main() -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--layers", type=int, default=24)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = given.questions.read_text(encoding="utf-8").split("\n")
    write_tokenizer(given.folder, [json.loads(line)["question"] for line in lines if line])
    print(f"{given.folder}: {write_model(given.folder, given.layers):,} parameters")


def write_tokenizer(folder: Path, texts: list[str]) -> None:
    """tokenizer.json and its configuration."""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=LEARNED, initial_alphabet=alphabet, show_progress=False)
    learned.train_from_iterator(texts, trainer)
    model = json.loads(learned.to_str())["model"]
    vocabulary = dict(model["vocab"])
    for filler in range(VOCABULARY - len(SPECIAL) - len(vocabulary)):
        vocabulary[f"filler{filler}"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, [tuple(pair) for pair in model["merges"]]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIAL[0],
        "eos_token": SPECIAL[2],
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def write_model(folder: Path, layers: int) -> int:
    """config.json and the weights; returns the number of parameters."""
    end = VOCABULARY - 1
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=layers,
        num_attention_heads=14,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        dtype="bfloat16",
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=VOCABULARY - len(SPECIAL),
    )
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = Qwen2ForCausalLM(config)
    model.generation_config.eos_token_id = end
    model.save_pretrained(folder)
    return sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    main()
