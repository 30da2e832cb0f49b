"""Questions become prompts: rendered, tokenised and sifted."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.data.questions import Question
from simplerl_trainer.data.templates import Template
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.samples import Prompt


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of a data set, in its order, and how many questions were dropped."""

    prompts: Sequence[Prompt]
    too_long: int
    """Questions whose prompt is longer than maxPromptTokens."""
    held_out: int
    """Training questions that also stand in an evaluation data set."""
    example: str
    """The first prompt's text, to look at."""
    unasked: Sequence[Prompt] = ()
    """The prompts that are too long."""


def make_prompts(
    questions: Sequence[Question],
    template: Template,
    tokenizer: Tokenizer,
    max_tokens: int,
    held_out: Set[str] = frozenset(),
    *,
    field: str = "data.train",
) -> PromptSet:
    """Prompts of at most `max_tokens` tokens of the questions that are not among `held_out` (see `key`).

    Raises TrainerFailure(INVALID_INPUT) where nothing is left.
    """
    kept = [(row, q) for row, q in enumerate(questions) if key(q.question) not in held_out]
    texts = [template.render(q.question) for _, q in kept]
    ids = tokenizer.encode(texts, chat=template.chat)
    made = [
        Prompt(row, q.question, q.answer, token_ids, q.record, q.gym)
        for (row, q), token_ids in zip(kept, ids, strict=True)
    ]
    prompts = [p for p in made if 0 < len(p.token_ids) <= max_tokens]
    unasked = [p for p in made if not 0 < len(p.token_ids) <= max_tokens]
    dropped = len(questions) - len(kept)
    if not prompts:
        shortest = f", the shortest of {min(map(len, ids))} tokens" if ids else ""
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"none of the {len(questions)} questions of {field} is left: {dropped} also stand in an evaluation data "
            f"set and {len(ids)} make prompts over data.maxPromptTokens {max_tokens}{shortest}: give other questions "
            "or a larger limit",
        )
    example = next(text for text, token_ids in zip(texts, ids, strict=True) if token_ids == prompts[0].token_ids)
    return PromptSet(prompts, too_long=len(unasked), held_out=dropped, example=example, unasked=unasked)


def key(question: str) -> str:
    """What makes two questions the same: their words, whatever the white space between them."""
    return " ".join(question.split())
