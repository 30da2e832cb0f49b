"""A plain Hugging Face folder: weights, config.json and the tokenizer's files; there at once, when it is whole."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from simplerl_trainer.checkpoints import swap
from simplerl_trainer.checkpoints.manifest import sync
from simplerl_trainer.weights.buckets import Bucket, Parameter, make_buckets

_FILE_BYTES = 4 * 2**30
"""Bytes of the largest file of weights."""
_NOT_COPIED = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".safetensors.index.json")


def files(parameters: Iterable[Parameter]) -> Sequence[Bucket]:
    """What goes into each file of weights."""
    return list(make_buckets(parameters, _FILE_BYTES))


def write(
    target: Path,
    source: Path,
    files: Sequence[Bucket],
    flats: Iterable[torch.Tensor],
    notes: Mapping[str, str],
) -> None:
    """Writes the folder `target`, readable by everybody; one that is there is replaced.

    `flats` are the weights of each file in one piece; `source` is a folder with config.json and tokenizer; `notes` are
    texts that go with them by their file's name. Raises OSError.
    """
    partial = swap.partial_of(target)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    copy_rest(source, partial, files[0].dtype)
    index: dict[str, str] = {}
    for number, (file, flat) in enumerate(zip(files, flats, strict=True), 1):
        name = "model.safetensors" if len(files) == 1 else f"model-{number:05}-of-{len(files):05}.safetensors"
        index |= dict.fromkeys((p.name for p in file.parameters), name)
        parts = flat.cpu().split([p.numel for p in file.parameters])
        tensors = {p.name: part.view(p.shape) for p, part in zip(file.parameters, parts, strict=True)}
        try:
            save_file(tensors, partial / name, metadata={"format": "pt"})
        except SafetensorError as e:
            raise OSError(f"{partial / name} cannot be written: {e}") from e
    if len(files) > 1:
        total = sum(p.nbytes for file in files for p in file.parameters)
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2)
        (partial / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    for name, text in notes.items():
        (partial / name).write_text(text, encoding="utf-8")
    for path in partial.iterdir():
        path.chmod(0o644)  # safetensors writes with mode 0600, which a server of another user could not read
        sync(path)
    sync(partial)
    swap.replace(target)


def copy_rest(source: Path, target: Path, dtype: str) -> Sequence[Path]:
    """Copies all but the weights of a Hugging Face folder; its config.json then says `dtype`. Returns the copies."""
    copies = []
    for file in sorted(source.iterdir()):
        if file.is_file() and not file.name.endswith(_NOT_COPIED):
            copies.append(target / file.name)
            shutil.copyfile(file, copies[-1])
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config.pop("torch_dtype", None)
    config["dtype"] = dtype
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return copies
