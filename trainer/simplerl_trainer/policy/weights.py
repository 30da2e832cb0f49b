"""The actor's weights whole: by bucket for the engines, as a Hugging Face folder for everybody else."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from simplerl_api.spec.training import Precision
from simplerl_trainer.policy.trained import Trained
from simplerl_trainer.weights.buckets import Bucket, Parameter, make_buckets

_PREFIX = "causal."
_SHARD = 4 * 2**30
"""Bytes of the largest file of weights."""
_NOT_COPIED = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".safetensors.index.json")


def parameters(actor: Trained, precision: Precision) -> list[Parameter]:
    """The actor's parameters by their Hugging Face names, in order; a tied head is its embedding and stands once."""
    dtype = "bfloat16" if precision is Precision.BF16 else "float32"
    return [Parameter(name, dtype, _shape(p)) for name, p in _named(actor).items()]


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


def export(actor: Trained, precision: Precision, source: str, target: Path, *, writes: bool) -> None:
    """Writes a plain Hugging Face folder: weights, config.json and the files of the tokenizer from `source`.

    Every rank takes part; the one that `writes` has the files, readable by everybody. The folder appears at once, when
    it is whole; one that is there is replaced.
    """
    named = parameters(actor, precision)
    shards = list(make_buckets(named, _SHARD))
    partial = target.with_name(target.name + ".partial")
    if writes:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _copy_rest(Path(source), partial, named[0].dtype)
    index: dict[str, str] = {}
    for number, (shard, flat) in enumerate(zip(shards, gather(actor, shards, wanted=writes), strict=True), 1):
        name = "model.safetensors" if len(shards) == 1 else f"model-{number:05}-of-{len(shards):05}.safetensors"
        index |= dict.fromkeys((p.name for p in shard.parameters), name)
        if writes:
            parts = flat.cpu().split([p.numel for p in shard.parameters])
            tensors = {p.name: part.view(p.shape).clone() for p, part in zip(shard.parameters, parts, strict=True)}
            save_file(tensors, partial / name, metadata={"format": "pt"})
    if not writes:
        return
    if len(shards) > 1:
        total = sum(p.nbytes for p in named)
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2)
        (partial / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    for file in partial.iterdir():
        file.chmod(0o644)  # safetensors writes with mode 0600, which a server of another user could not read
    shutil.rmtree(target, ignore_errors=True)
    os.replace(partial, target)


def _copy_rest(source: Path, target: Path, dtype: str) -> None:
    for file in sorted(source.iterdir()):
        if file.is_file() and not file.name.endswith(_NOT_COPIED):
            shutil.copyfile(file, target / file.name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = dtype
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _named(actor: Trained) -> dict[str, torch.nn.Parameter]:
    return {name.removeprefix(_PREFIX): p for name, p in actor.module.named_parameters()}


def _shape(p: torch.nn.Parameter) -> tuple[int, ...]:
    return tuple(getattr(p, "ds_shape", p.shape))
