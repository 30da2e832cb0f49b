"""Whether a model can be shared out over the GPUs of an engine."""

from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.models import documents

SIZES = (1, 2, 4, 8)
"""Values of rollout.tensorParallelSize."""


def check(folder: Path, size: int, field: str = "rollout.tensorParallelSize") -> None:
    """Heads and hidden units are dealt out whole; heads of keys and values may be repeated.

    Raises TrainerFailure(INVALID_INPUT) naming the field, what does not divide, and the sizes that fit.
    """
    config = documents.read(folder, "config.json", f"model folder {folder}")
    for key in ("num_attention_heads", "intermediate_size", "num_key_value_heads"):
        value = config.get(key)
        if value is None and key == "num_key_value_heads":
            continue  # as many as of queries
        if not isinstance(value, int) or value < 1:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"model folder {folder} has a config.json without a number {key}: complete it",
            )
    found = _in_the_way(config, size)
    if found is not None:
        fits = " or ".join(str(s) for s in SIZES if _in_the_way(config, s) is None)
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{field} is {size}, over which the {found} of model folder {folder} cannot be dealt "
            f"out evenly: use {fits}",
        )


def _in_the_way(config: dict[str, int], size: int) -> str | None:
    heads, hidden = config["num_attention_heads"], config["intermediate_size"]
    kv_heads = config.get("num_key_value_heads") or heads
    if heads % size:
        return f"{heads} attention heads"
    if kv_heads % size and size % kv_heads:
        return f"{kv_heads} heads of keys and values"
    if hidden % size:
        return f"{hidden} units of the hidden layers"
    return None
