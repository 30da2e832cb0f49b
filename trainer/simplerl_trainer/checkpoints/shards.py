"""A trained model on disk: float32 masters and AdamW's moments in slices, which any number of ranks reads back.

Each rank writes the slices that it holds and reads those that it needs, so that no process ever holds the whole model;
neither the number of ranks nor the ZeRO stage shows in what is saved:

    00000-of-00002.00000.safetensors   tensors `master NAME`, `exp_avg NAME`, `exp_avg_sq NAME`: flat, float32
                                       metadata `slices`: {NAME: {"start": first element, "shape": of the whole}}
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from simplerl_trainer.checkpoints.manifest import Incomplete

MASTER = "master"
"""The weights in float32."""
MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's two moment estimates, by torch's names."""
KEYS = (MASTER, *MOMENTS)
FILE_BYTES = 2 * 2**30
"""Bytes of tensors in the largest file: a rank copies so much of the GPU at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A slice of one parameter that a rank holds."""

    name: str
    shape: tuple[int, ...]
    """Of the whole parameter."""
    start: int
    """First element, of the flat parameter."""
    state: Mapping[str, torch.Tensor]
    """By key: [numel] each, float32; views of what the rank trains with, so that copying into them loads them."""

    @property
    def numel(self) -> int:
        return self.state[MASTER].numel()

    def part(self, start: int, numel: int) -> "Shard":
        """`numel` elements from `start`, counted from the shard's own first."""
        return Shard(
            self.name, self.shape, self.start + start, {k: t.narrow(0, start, numel) for k, t in self.state.items()}
        )

    def only(self, key: str) -> "Shard":
        """The shard with one of its tensors."""
        return Shard(self.name, self.shape, self.start, {key: self.state[key]})


def share(shards: Sequence[Shard], rank: int, ranks: int) -> Sequence[Shard]:
    """The part of the same shards on all ranks that one of them writes: near equal parts, together the whole."""
    total = sum(s.numel for s in shards)
    first, last = total * rank // ranks, total * (rank + 1) // ranks
    mine, at = [], 0
    for shard in shards:
        start, stop = max(first - at, 0), min(last - at, shard.numel)
        if start < stop:
            mine.append(shard.part(start, stop - start))
        at += shard.numel
    return mine


def write(folder: Path, shards: Sequence[Shard], rank: int, ranks: int, limit: int = FILE_BYTES) -> Sequence[Path]:
    """Writes a rank's shards, all with the same keys, to files of at most `limit` bytes; returns them.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    element = 4 * max((len(s.state) for s in shards), default=1)
    for number, parts in enumerate(_files(shards, max(limit // element, 1))):
        path = folder / f"{rank:05}-of-{ranks:05}.{number:05}.safetensors"
        tensors = {f"{key} {p.name}": t.detach().cpu().contiguous() for p in parts for key, t in p.state.items()}
        slices = {p.name: {"start": p.start, "shape": p.shape} for p in parts}
        try:
            save_file(tensors, path, metadata={"slices": json.dumps(slices)})
        except SafetensorError as e:
            raise OSError(f"{path} cannot be written: {e}") from e
        path.chmod(0o644)  # safetensors writes with mode 0600: others would not export it
        files.append(path)
    return files


def _files(shards: Sequence[Shard], limit: int) -> Iterator[Sequence[Shard]]:
    """The shards, cut where `limit` elements are passed; a file holds one slice of a parameter at most."""
    parts: list[Shard] = []
    room = limit
    for shard in shards:
        at = 0
        while at < shard.numel:
            taken = min(room, shard.numel - at)
            parts.append(shard.part(at, taken))
            at, room = at + taken, room - taken
            if not room:
                yield parts
                parts, room = [], limit
    if parts:
        yield parts


class Saved:
    """What a folder of shards holds, whoever wrote it. Its files stay open, mapped into memory."""

    def __init__(self, folder: Path) -> None:
        """Reads the headers. Raises Incomplete naming a file that cannot be read."""
        self._folder = folder
        self.shapes: dict[str, tuple[int, ...]] = {}
        """Of all parameters, by name."""
        self._pieces: dict[str, list[tuple[int, Any]]] = {}
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise Incomplete(f"{folder} holds no weights")
        for path in files:
            try:
                file = safe_open(path, framework="pt")
                slices = json.loads(file.metadata()["slices"])
                for name, s in slices.items():
                    self.shapes[name] = tuple(s["shape"])
                    self._pieces.setdefault(name, []).append((int(s["start"]), file))
            except (OSError, SafetensorError, ValueError, KeyError, TypeError) as e:
                raise Incomplete(f"{path} cannot be read: {e!r}") from e

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raises Incomplete naming a parameter that the model has and the folder has not, or the other way round, or
        in another shape."""
        for name in sorted(shapes.keys() | self.shapes.keys()):
            if shapes.get(name) != (saved := self.shapes.get(name)):
                raise Incomplete(
                    f"{self._folder} was saved of another model: {name} is {_shown(saved)} there and "
                    f"{_shown(shapes.get(name))} in the model"
                )

    def fill(self, shards: Iterable[Shard]) -> None:
        """Copies what was saved into a rank's shards. Raises Incomplete naming what is not there."""
        for shard in shards:
            for key, tensor in shard.state.items():
                self._read(shard.name, key, shard.start, tensor)

    def whole(self, name: str, key: str = MASTER) -> torch.Tensor:
        """A whole parameter, [numel] in float32. Raises Incomplete naming what is not there."""
        tensor = torch.empty(prod(self.shapes[name]))
        self._read(name, key, 0, tensor)
        return tensor

    def _read(self, name: str, key: str, start: int, out: torch.Tensor) -> None:
        """Fills `out` [numel] with the elements from `start`."""
        missing = out.numel()
        for first, file in self._pieces.get(name, []):
            try:
                piece = file.get_slice(f"{key} {name}")
            except SafetensorError as e:
                raise Incomplete(f"{self._folder} holds no {key} of {name}: {e}") from e
            (length,) = piece.get_shape()
            begin, end = max(start, first), min(start + out.numel(), first + length)
            if begin < end:
                with torch.no_grad():
                    out[begin - start : end - start].copy_(piece[begin - first : end - first])
                missing -= end - begin
        if missing:
            raise Incomplete(
                f"{self._folder} lacks {missing} of the elements {start} to {start + out.numel()} of {key} of {name}"
            )


def _shown(shape: tuple[int, ...] | None) -> str:
    return "not" if shape is None else " x ".join(str(n) for n in shape) or "a number"
