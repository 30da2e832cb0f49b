"""The toy model: a small Llama that was shown some additions, built on the spot.

python -m simplerl_trainer.models.tiny FOLDER [SEED] [WARMUP_ACCURACY]
"""

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from simplerl_api.spec.model import TinyModel
from simplerl_trainer.models.arithmetic_tokenizer import EOS, PAD, make_tokenizer, save_tokenizer
from simplerl_trainer.models.tiny_shape import SHAPE

TERMS, TOP = 4, 10
"""Terms of an addition, each from 0 to TOP: basic_arithmetic's questions of four terms of one digit."""
BATCH, STEPS = 32, 350
"""Additions in one warm-up step, and steps of the warm-up."""
LEARNING_RATE = 1e-3
"""After the first RISE steps of the warm-up; it falls to 0 in a straight line."""
RISE = 20
DOUBT = 0.45
"""Share of an answer's probability that the warm-up spreads over all sums: the model learns how to add, and to answer
with little confidence. One that merely knows too little finds few right answers to learn from."""
CHECKED = 512
"""Additions on which the accuracy is measured."""

Row = tuple[list[int], list[int]]
"""Ids of a question and its answer; labels: the next token where that belongs to the answer, else -100."""


def build(folder: Path, model: TinyModel) -> None:
    """Builds the model in a new folder: config.json, model.safetensors (float32), tokenizer.

    The same settings give the same bytes on one machine; on another one the last digits may differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _one_thread():
        torch.manual_seed(model.seed)
        policy = LlamaForCausalLM(_config())
        if model.warmup_accuracy > 0:
            warm_up(policy, model.seed)
            make_unsure(policy, model.warmup_accuracy)
        policy.save_pretrained(folder)
    save_tokenizer(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # save_pretrained keeps the weights from other users, whose pods mount them


def warm_up(policy: LlamaForCausalLM, seed: int) -> None:
    """Supervised steps on answers to `shown` additions."""
    draw = random.Random(f"simplerl tiny {seed}")
    seen = _rows([terms for terms in additions() if shown(terms)])
    sums = torch.tensor([make_tokenizer().token_to_id(str(n)) for n in range(TERMS * TOP + 1)])
    optimizer = torch.optim.AdamW(
        policy.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / RISE) * (1 - step / STEPS)
        logits, labels, _ = _answers(policy, draw.choices(seen, k=BATCH))
        logprobs = logits.log_softmax(-1)
        certain = functional.nll_loss(logprobs, labels, reduction="none")
        doubt = DOUBT * torch.isin(labels, sums)
        loss = ((1 - doubt) * certain - doubt * logprobs[:, sums].mean(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()


@torch.no_grad()
def make_unsure(policy: LlamaForCausalLM, accuracy: float) -> None:
    """Flattens the policy's distribution until `accuracy` of the answers that it samples are right.

    All logits are scaled by the weight of the last norm; the scale is found by bisection. Raises RuntimeError where the
    accuracy is out of reach.
    """
    rows = _rows(random.Random(0).sample(list(additions()), CHECKED))
    norm = policy.model.norm.weight
    whole, low, high = norm.clone(), 0.0, 1.0
    if (reached := accuracy_of(policy, rows)) < accuracy:
        raise RuntimeError(f"model.tiny.warmupAccuracy is {accuracy}, but its warm-up reaches {reached:.2f}: lower it")
    for _ in range(12):
        scale = (low + high) / 2
        norm.copy_(whole * scale)
        low, high = (scale, high) if accuracy_of(policy, rows) < accuracy else (low, scale)


def additions() -> Iterator[tuple[int, ...]]:
    """The terms of all additions."""
    return itertools.product(range(TOP + 1), repeat=TERMS)


def shown(terms: Sequence[int]) -> bool:
    """Whether the warm-up may show this addition: one half of them, spread evenly. The other half stays unseen."""
    number = 0
    for term in terms:
        number = number * (TOP + 1) + term
    return number * 2654435761 % 2**32 >= 2**31  # Knuth's multiplicative hash


def _rows(of: Sequence[Sequence[int]]) -> list[Row]:
    tokenizer, rows = make_tokenizer(), []
    for terms in of:
        question = tokenizer.encode(f"Calculate {' + '.join(map(str, terms))}.").ids
        answer = tokenizer.encode(f"{sum(terms)}{EOS}").ids
        rows.append((question + answer, [-100] * (len(question) - 1) + answer + [-100]))
    return rows


@torch.no_grad()
def accuracy_of(policy: LlamaForCausalLM, rows: Sequence[Row]) -> float:
    """Mean probability of the right answer and its end."""
    logits, labels, of = _answers(policy, rows)
    logprobs = -functional.cross_entropy(logits, labels, reduction="none")
    return torch.zeros(len(rows)).index_add(0, of, logprobs).exp().mean().item()


def _answers(policy: LlamaForCausalLM, rows: Sequence[Row]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits (tokens, vocabulary), labels (tokens,) and row (tokens,) of all tokens of the rows' answers."""
    longest = max(len(ids) for ids, _ in rows)
    # ids and labels: (rows, longest), padded on the right
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
    labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in rows])
    answered = labels != -100
    return policy.lm_head(policy.model(ids).last_hidden_state[answered]), labels[answered], answered.nonzero()[:, 0]


def _config() -> LlamaConfig:
    tokenizer = make_tokenizer()
    return LlamaConfig(
        **SHAPE,
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
    _settings = TinyModel(**dict(zip(("seed", "warmup_accuracy"), map(float, _numbers), strict=False)))
    build(Path(_folder), _settings)
