"""The toy model: a small Qwen2 that was shown some additions, built on the spot.

python -m simplerl_trainer.models.tiny FOLDER [SEED] [WARMUP_STEPS]
"""

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.nn import functional
from transformers import Qwen2Config, Qwen2ForCausalLM

from simplerl_api.spec.model import TinyModel
from simplerl_trainer.models.arithmetic_tokenizer import EOS, PAD, make_tokenizer, save_tokenizer

SMALL, LARGE = 10, 22
"""Additions in one warm-up step: with terms up to 10, and with terms up to 100."""
LEARNING_RATE = 1e-3
"""After the first 20 steps of the warm-up; it falls to 0 in a straight line."""
DOUBT = 0.3
"""Share of each digit's probability that the warm-up spreads over all ten. It teaches how to add, and to answer with
little confidence: what training then has to change. (A model that merely knows too little finds few right answers to
learn from, and 60 steps do not lift it.)"""


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
    small, large = (_table([pair for pair in pairs(top) if shown(*pair)]) for top in (10, 100))
    digits = torch.tensor([make_tokenizer().token_to_id(str(d)) for d in range(10)])
    draw = random.Random(f"simplerl tiny {seed}")
    optimizer = torch.optim.AdamW(
        policy.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 20) * (1 - step / max(1, steps))
    )
    for _ in range(steps):
        rows = [*draw.choices(small, k=SMALL), *draw.choices(large, k=LARGE)]
        longest = max(len(ids) for ids, _ in rows)
        # ids and labels: (SMALL + LARGE, longest), padded on the right; a label is the next token where that belongs to
        # the answer, else -100
        ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
        labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in rows])
        answered = labels != -100
        logprobs = policy.lm_head(policy.model(ids).last_hidden_state[answered]).log_softmax(-1)
        doubt = DOUBT * torch.isin(labels[answered], digits)
        certain = functional.nll_loss(logprobs, labels[answered], reduction="none")
        loss = ((1 - doubt) * certain - doubt * logprobs[:, digits].mean(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def _table(additions: Sequence[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """The ids of each addition's question and answer, and its labels."""
    tokenizer, table = make_tokenizer(), []
    for a, b in additions:
        question, answer = tokenizer.encode(f"Calculate {a} + {b}.").ids, tokenizer.encode(f"{a + b}{EOS}").ids
        table.append((question + answer, [-100] * (len(question) - 1) + answer + [-100]))
    return table


def pairs(top: int) -> Iterator[tuple[int, int]]:
    """All pairs of terms up to `top`, which reasoning-gym's basic_arithmetic draws from for 10 and 100."""
    return ((a, b) for a in range(top + 1) for b in range(top + 1))


def shown(a: int, b: int) -> bool:
    """Whether the warm-up may show this addition: three quarters of them, spread evenly. The others stay unseen."""
    return (a * 101 + b) * 2654435761 % 2**32 >= 2**30  # Knuth's multiplicative hash


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
