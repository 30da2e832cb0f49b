"""The questions of a data set as prompts of one model: all of them, since one that cannot be asked counts as wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simplerl_trainer.data import known
from simplerl_trainer.data.templates import Template
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.evaluation.records import Record, unasked
from simplerl_trainer.evaluation.sets import Set
from simplerl_trainer.samples import Prompt


@dataclass(frozen=True, slots=True)
class Asked:
    """The prompts of a data set."""

    prompts: Sequence[Prompt]
    """Of all questions, in their order."""
    too_long: Mapping[int, str]
    """By position: why a question cannot be asked."""

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt that can be asked."""
        return max((len(p.token_ids) for i, p in enumerate(self.prompts) if i not in self.too_long), default=1)

    def unasked(self, samples: int) -> list[Record]:
        """The records of the questions that cannot be asked."""
        return [
            unasked(i * samples + s, self.prompts[i], why) for i, why in self.too_long.items() for s in range(samples)
        ]


def ask(found: Set, template: Template, tokenizer: Tokenizer, most_tokens: int, context: int) -> Asked:
    """The prompts of a data set; `context` is the longest prompt and response of the model."""
    ids = tokenizer.encode([template.render(q.question) for q in found.questions], chat=template.chat)
    prompts = known.tolerated(
        found.name,
        [
            Prompt(row, q.question, q.answer, token_ids, q.record)
            for row, (q, token_ids) in enumerate(zip(found.questions, ids, strict=True))
        ],
    )
    too_long = {
        p.row: f"its prompt of {len(p.token_ids)} tokens and {most_tokens} of the response exceed the model's {context}"
        for p in prompts
        if len(p.token_ids) + most_tokens > context
    }
    too_long |= {p.row: "its prompt holds no token" for p in prompts if not p.token_ids}
    return Asked(prompts, too_long)
