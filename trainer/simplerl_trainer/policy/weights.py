"""The actor's weights: by bucket for the engines, as a Hugging Face folder for everybody else."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
import torch.distributed as dist

from simplerl_api.spec.training import Precision
from simplerl_trainer.checkpoints import hugging_face, shards
from simplerl_trainer.policy.trained import AtHand, Trained
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
    actor: Trained,
    precision: Precision,
    source: str,
    target: Path,
    notes: Mapping[str, str],
    at_hand: AtHand,
) -> None:
    """Writes a plain Hugging Face folder with the configuration and tokenizer of `source`; `notes` go with it.

    Every rank writes its part of the masters to a folder beside it, of which the first makes the model: nothing is
    gathered on a device, whose memory the engines may have. Collective. Raises OSError.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = target.with_name(f"{target.name}.shards")
    if rank == 0:
        shutil.rmtree(parts, ignore_errors=True)
        parts.mkdir(parents=True)
    dist.barrier()
    shards.write(parts, [s.only(shards.MASTER) for s in actor.written(at_hand)], rank, ranks)
    dist.barrier()
    if rank == 0:
        masters = shards.Saved(parts)
        masters.check({n: whole_shape(p) for n, p in actor.module.named_parameters()})
        assemble(masters, precision, Path(source), target, notes)
        shutil.rmtree(parts, ignore_errors=True)


def assemble(masters: shards.Saved, precision: Precision, source: Path, target: Path, notes: Mapping[str, str]) -> None:
    """Writes a plain Hugging Face folder of the actor's masters, a file at a time. Raises OSError, Incomplete."""
    dtype = dtype_name(precision)
    names = {hugging_face_name(name): name for name in masters.shapes}
    files = hugging_face.files(Parameter(n, dtype, masters.shapes[name]) for n, name in names.items())
    flats = (torch.cat([masters.whole(names[p.name]).to(getattr(torch, dtype)) for p in f.parameters]) for f in files)
    hugging_face.write(target, source, files, flats, notes)


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
