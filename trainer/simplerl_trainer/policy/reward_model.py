"""A reward model: a sequence classifier of one label, only run, over packs of texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from simplerl_trainer.policy.attention import Layout, make_layout
from simplerl_trainer.policy.step_plan import first_fit

Text = tuple[int, ...]
"""Token ids of a question and its response, in the reward model's vocabulary."""


@dataclass(frozen=True, slots=True)
class TextPack:
    """n texts of T tokens in all, end to end in one row."""

    ids: torch.Tensor
    """[1, T] int64"""
    positions: torch.Tensor
    """[1, T] int64; starts at 0 in each text."""
    layout: Layout


class RewardModel(nn.Module):
    """Scores each text by the hidden state of its last token. Parameters bear their Hugging Face names after
    `classifier.`."""

    def __init__(self, classifier: PreTrainedModel) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, pack: TextPack) -> torch.Tensor:
        """Scores [n] in float32."""
        out = self.classifier.model(
            input_ids=pack.ids, position_ids=pack.positions, use_cache=False, layout=pack.layout
        )
        last = pack.layout.cu_seqlens[1:].long() - 1
        return self.classifier.score(out.last_hidden_state[0].index_select(0, last)).float()[:, 0]


@torch.no_grad()
def score(
    model: Callable[[TextPack], torch.Tensor],
    texts: Sequence[Text],
    max_tokens: int,
    most_packs: Callable[[int], int],
    device: torch.device,
) -> list[float]:
    """A score for each text; nan for an empty one, which stands for a text that cannot be scored.

    Texts are packed first-fit, longest first, up to `max_tokens` a pack; a longer one has a pack of its own.
    Collective: `most_packs` gives the greatest number of packs of all ranks, since a partitioned model must be run
    equally often on each.
    """
    scores = [nan] * len(texts)
    lengths = {i: len(text) for i, text in enumerate(texts) if text}
    packs = first_fit(sorted(lengths, key=lambda i: -lengths[i]), lengths, max_tokens)
    for members in (*packs, *[()] * (most_packs(len(packs)) - len(packs))):
        found = model(_make([texts[i] for i in members] or [(0,)], device))
        for i, number in zip(members, found.tolist(), strict=False):
            scores[i] = number
    return scores


def _make(texts: Sequence[Text], device: torch.device) -> TextPack:
    def row(numbers: Iterator[int]) -> Any:
        return torch.tensor([list(numbers)], dtype=torch.int64).to(device)

    return TextPack(
        ids=row(i for text in texts for i in text),
        positions=row(p for text in texts for p in range(len(text))),
        layout=make_layout([len(text) for text in texts], device),
    )
