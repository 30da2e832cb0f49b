"""The ids of rollout.sampling.stop."""

from collections.abc import Sequence

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.data.tokenizer import Tokenizer


def ids(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The id of each text.

    Engines stop on ids alone, since they never see text. Raises TrainerFailure(INVALID_INPUT) naming a text that is
    not exactly one token.
    """
    encoded = tokenizer.encode(texts, chat=True)
    for position, (text, tokens) in enumerate(zip(texts, encoded, strict=True)):
        if len(tokens) != 1:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"rollout.sampling.stop[{position}] is {text!r}, which is {len(tokens)} tokens of the model's "
                "tokenizer: give texts that are one token each, for example <|im_end|>",
            )
    return tuple(tokens[0] for tokens in encoded)
