"""The actor's weights whole: by bucket for the engines, as a Hugging Face folder for everybody else."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import hugging_face
from simplerl_trainer.policy.trained import Trained
from simplerl_trainer.weights.buckets import Bucket, Parameter

_PREFIX = "causal."


def parameters(actor: Trained, precision: Precision) -> list[Parameter]:
    """The actor's parameters by their Hugging Face names, in order; a tied head is its embedding and stands once."""
    dtype = dtype_name(precision)
    return [Parameter(name, dtype, whole_shape(p)) for name, p in _named(actor).items()]


def gather(actor: Trained, buckets: Sequence[Bucket], *, wanted: bool) -> Iterator[torch.Tensor]:
    """Each bucket as one flat tensor on this rank's device, in order; without elements where it is not `wanted`.

    Collective under ZeRO-3: every rank takes every bucket, and one bucket is whole at a time.
    """
    named = _named(actor)
    for bucket in buckets:
        members = [named[p.name] for p in bucket.parameters]
        with actor.gathered(list({id(p): p for p in members}.values())), torch.no_grad():
            flat = torch.cat([p.detach().flatten() for p in members]) if wanted else members[0].new_empty(0)
        yield flat


def export(
    actor: Trained, precision: Precision, source: str, target: Path, notes: Mapping[str, str], *, writes: bool
) -> None:
    """Writes a plain Hugging Face folder with the configuration and tokenizer of `source`; `notes` go with it.

    Every rank takes part; the one that `writes` has the files.
    """
    files = hugging_face.files(parameters(actor, precision))
    flats = gather(actor, files, wanted=writes)
    if writes:
        hugging_face.write(target, Path(source), files, flats, notes)
    else:
        for _ in flats:
            pass


def hugging_face_name(name: str) -> str:
    """The Hugging Face name of one of the actor's parameters."""
    return name.removeprefix(_PREFIX)


def dtype_name(precision: Precision) -> str:
    """torch's name of the type of weights."""
    return "bfloat16" if precision is Precision.BF16 else "float32"


def whole_shape(p: torch.nn.Parameter) -> tuple[int, ...]:
    """The shape of a parameter of which a rank may hold a part."""
    return tuple(getattr(p, "ds_shape", p.shape))


def _named(actor: Trained) -> dict[str, torch.nn.Parameter]:
    return {hugging_face_name(name): p for name, p in actor.module.named_parameters()}
