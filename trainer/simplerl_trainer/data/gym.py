"""Questions made by reasoning-gym."""

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import ReasoningGym


def generate(gym: ReasoningGym, field: str) -> Sequence[dict[str, Any]]:
    """The entries of a generated data set: question, answer (None where only the scorer knows), metadata.

    `field` is the spec's path, for messages. Raises TrainerFailure(INVALID_INPUT) naming the generator or its setting.
    """
    import reasoning_gym  # a second of imports, only where it is used
    from reasoning_gym.factory import DATASETS

    name = gym.dataset
    if name not in DATASETS:
        close = difflib.get_close_matches(name, DATASETS, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see reasoning-gym's gallery for the names"
        raise _invalid(f"{field}.dataset is {name}, which reasoning-gym does not have: {hint}")
    settings = {f.name for f in dataclasses.fields(DATASETS[name][1])}
    for key in gym.config:
        if key in ("seed", "size"):
            raise _invalid(f"{field}.config holds {key}: give it as {field}.{key}")
        if key not in settings:
            close = difflib.get_close_matches(key, settings, n=1)
            known = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(settings - {'seed', 'size'}))}"
            raise _invalid(f"{field}.config.{key} is not a setting of {name}: {known}")
    try:
        data = reasoning_gym.create_dataset(name, size=gym.size, seed=gym.seed, **gym.config)
        return [data[i] for i in range(gym.size)]
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as e:
        # the generators check their settings with assert, or not at all
        raise _invalid(f"{field}.config does not suit {name}: {e or type(e).__name__}") from e


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
