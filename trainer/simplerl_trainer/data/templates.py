"""How a question becomes the text of a prompt."""

from collections.abc import Callable
from dataclasses import dataclass

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import SLOT
from simplerl_trainer.data.tokenizer import Tokenizer

FIELD = "data.promptTemplate"
QWEN_BOXED = (
    "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
    "<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant"
)
"""simpleRL-reason's training prompt (branch v0), which has no line break at its end."""


@dataclass(frozen=True, slots=True)
class Template:
    """A way to write prompts."""

    render: Callable[[str], str]
    """The prompt's text for a question."""
    chat: bool
    """Whether the text holds all its special tokens itself."""


def choose(prompt_template: str | None, tokenizer: Tokenizer, field: str = FIELD) -> Template:
    """The template that `field` names.

    Raises TrainerFailure(INVALID_INPUT) for `chat` without a chat template and for a literal without {question}.
    """
    match prompt_template:
        case "qwen-boxed":
            return literal(QWEN_BOXED)
        case "chat" if not tokenizer.has_chat_template:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"{field} is chat, but model folder {tokenizer.folder} has no chat template: give a literal text with "
                f"{SLOT} in it",
            )
        case "chat":
            return Template(tokenizer.chat_prompt, chat=True)
        case None:
            return Template(tokenizer.chat_prompt, chat=True) if tokenizer.has_chat_template else literal(SLOT)
        case _:
            return literal(prompt_template, field)


def literal(text: str, field: str = FIELD) -> Template:
    """A text with {question} in it; other braces mean themselves.

    Raises TrainerFailure(INVALID_INPUT) where {question} is missing.
    """
    if SLOT not in text:
        shown = text if len(text) <= 80 else text[:77] + "..."
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{field} is {shown!r}, which has no {SLOT} in it: add it, or name qwen-boxed or chat",
        )
    parts = text.split(SLOT)
    return Template(lambda question: question.join(parts), chat=False)
