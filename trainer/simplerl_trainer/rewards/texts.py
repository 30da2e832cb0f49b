"""Questions and responses as the reward models read them: text by a template, ids by each model's own tokenizer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.rewards import Reward
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.models import judges
from simplerl_trainer.samples import Sample


@dataclass(frozen=True, slots=True)
class JudgeReader:
    """How one reward model reads."""

    tokenizer: Tokenizer
    template: str | None
    """A literal with {response}; None: the tokenizer's chat template."""
    longest: int
    """Longest text in tokens."""

    def read(self, questions: Sequence[str], responses: Sequence[str]) -> list[tuple[int, ...]]:
        """The ids of each question with its response; empty where they are too long.

        A begin-of-sequence token stands once, whether the template or the tokenizer brings it.
        """
        pairs = list(zip(questions, responses, strict=True))
        if self.template is None:
            texts = [self.tokenizer.conversation(question, response) for question, response in pairs]
        else:
            texts = [_filled(self.template, question, response) for question, response in pairs]
        encoded = self.tokenizer.encode(texts, chat=self.template is None)
        return [ids if len(ids) <= self.longest else () for ids in encoded]


def open_readers(rewards: Sequence[Reward], folders: Mapping[int, Path]) -> list[JudgeReader]:
    """A reader for each reward model, in their order; `folders` holds each one's folder on this machine by its place.

    Raises TrainerFailure(INVALID_INPUT) naming the folder that cannot be used, or that lacks a chat template.
    """
    readers = []
    for i, reward in enumerate(rewards):
        if reward.model is None:
            continue
        field, folder = f"rewards[{i}].model.{reward.model.tag}", folders[i]
        longest = judges.read(folder, field, weights=reward.model.hub is None).longest
        tokenizer = Tokenizer(folder)
        if reward.model.template is None and not tokenizer.has_chat_template:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"{field} is {folder}, whose tokenizer has no chat template: set rewards[{i}].model.template to a text "
                "with {question} and {response}",
            )
        readers.append(JudgeReader(tokenizer, reward.model.template, longest))
    return readers


def read(
    readers: Sequence[JudgeReader], samples: Sequence[Sample], texts: Mapping[int, str]
) -> dict[int, tuple[tuple[int, ...], ...]]:
    """By sample: what each reward model reads of it; `texts` has each response by its sample's id."""
    questions, responses = [s.prompt.question for s in samples], [texts[s.id] for s in samples]
    by_reader = [reader.read(questions, responses) for reader in readers]
    return {s.id: tuple(ids[i] for ids in by_reader) for i, s in enumerate(samples)}


def _filled(template: str, question: str, response: str) -> str:
    # in one pass: a question that holds {response} stays as it is
    values = {"{question}": question, "{response}": response}
    return re.sub(r"\{question\}|\{response\}", lambda found: values[found[0]], template)
