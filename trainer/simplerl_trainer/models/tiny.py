"""The toy model: a small Qwen2 that was shown some additions, built on the spot.

python -m simplerl_trainer.models.tiny FOLDER [SEED] [WARMUP_STEPS]
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.nn import functional
from transformers import Qwen2Config, Qwen2ForCausalLM

from simplerl_api.spec.model import TinyModel
from simplerl_trainer.models.arithmetic_tokenizer import EOS, PAD, make_tokenizer, save_tokenizer

BATCH = 32
"""Additions in one warm-up step."""
TWO_DIGITS = 24
"""Those of them whose terms reach 100; the terms of the others reach 10."""
LEARNING_RATE = 1e-3
"""At the start of the warm-up; it falls to 0 in a straight line."""


def build(folder: Path, model: TinyModel) -> None:
    """Builds the model in a new folder: config.json, model.safetensors (float32), tokenizer.

    The same settings give the same bytes on one machine; on another one the last digits may differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _one_thread():
        torch.manual_seed(model.seed)
        policy = Qwen2ForCausalLM(_config())
        warm_up(policy, model.seed, model.warmup_steps)
        policy.save_pretrained(folder)
    save_tokenizer(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # save_pretrained keeps the weights from other users, whose pods mount them


def warm_up(policy: Qwen2ForCausalLM, seed: int, steps: int) -> None:
    """Supervised steps on answers to `Calculate 23 + 34.`, over `shown` additions only."""
    tokenizer = make_tokenizer()
    draw = random.Random(f"simplerl tiny {seed}")
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20) * (1 - step / steps))
    additions = {digits: [pair for pair in pairs(digits) if shown(*pair)] for digits in (1, 2)}
    for _ in range(steps):
        batch = [*draw.choices(additions[1], k=BATCH - TWO_DIGITS), *draw.choices(additions[2], k=TWO_DIGITS)]
        prompts = [tokenizer.encode(f"Calculate {a} + {b}.").ids for a, b in batch]
        answers = [tokenizer.encode(f"{a + b}{EOS}").ids for a, b in batch]
        longest = max(len(p) + len(r) for p, r in zip(prompts, answers, strict=True))
        # ids: (BATCH, longest), padded on the right; labels: the next token where it belongs to the answer, else -100
        ids = torch.full((BATCH, longest), tokenizer.token_to_id(PAD))
        labels = torch.full((BATCH, longest), -100)
        for row, (prompt, response) in enumerate(zip(prompts, answers, strict=True)):
            end = len(prompt) + len(response)
            ids[row, :end] = torch.tensor(prompt + response)
            labels[row, len(prompt) - 1 : end - 1] = torch.tensor(response)
        hidden = policy.model(ids).last_hidden_state
        answered = labels != -100
        loss = functional.cross_entropy(policy.lm_head(hidden[answered]), labels[answered])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def pairs(digits: int) -> Iterator[tuple[int, int]]:
    """All pairs of terms from 0 to 10**digits, the range of reasoning-gym's basic_arithmetic."""
    top = 10**digits
    return ((a, b) for a in range(top + 1) for b in range(top + 1))


def shown(a: int, b: int) -> bool:
    """Whether the warm-up may show this addition: one half of them, spread evenly. The other half stays unseen."""
    return (a * 101 + b) * 2654435761 % 2**32 >= 2**31  # Knuth's multiplicative hash


def _config() -> Qwen2Config:
    tokenizer = make_tokenizer()
    return Qwen2Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,  # 32 a head: the smallest that vLLM's CPU attention has
        num_key_value_heads=4,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.06,  # learns the additions in two thirds of the steps that 0.02 takes
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(EOS),
        pad_token_id=tokenizer.token_to_id(PAD),
        dtype="float32",
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """The order of sums, and with it the last digits, depends on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    _folder, *_numbers = sys.argv[1:]
    build(Path(_folder), TinyModel(**dict(zip(("seed", "warmup_steps"), map(int, _numbers), strict=False))))
