"""What any number of ranks writes, any other number reads."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from simplerl_trainer.checkpoints import shards
from simplerl_trainer.checkpoints.manifest import Incomplete
from simplerl_trainer.checkpoints.shards import KEYS, Saved, Shard

SHAPES = {"embed.weight": (5, 3), "norm.weight": (7,), "head.weight": (1,), "scale": ()}


def whole(fill: Callable[[int], torch.Tensor], shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> list[Shard]:
    """Every parameter whole, as a rank of stage 0 holds it."""
    return [
        Shard(name, shape, 0, {key: fill(int(torch.Size(shape).numel())) for key in KEYS})
        for name, shape in shapes.items()
    ]


def equal(a: Sequence[Shard], b: Sequence[Shard]) -> bool:
    return all(
        x.name == y.name and all(torch.equal(x.state[k], y.state[k]) for k in KEYS) for x, y in zip(a, b, strict=True)
    )


@settings(max_examples=40, deadline=None)
@given(
    shapes=st.dictionaries(
        st.text("abc.", min_size=1, max_size=4), st.lists(st.integers(1, 5), max_size=3).map(tuple), min_size=1
    ),
    writers=st.integers(1, 5),
    readers=st.integers(1, 5),
    limit=st.integers(1, 200),
)
def test_what_any_number_of_ranks_writes_any_other_reads(
    shapes: dict[str, tuple[int, ...]], writers: int, readers: int, limit: int
) -> None:
    original = whole(torch.randn, shapes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "actor"
        files = [
            path
            for rank in range(writers)
            for path in shards.write(folder, shards.share(original, rank, writers), rank, writers, limit=limit)
        ]
        assert sorted(files) == sorted(folder.iterdir())
        for path in files:
            with safe_open(path, framework="pt") as f:
                tensors = [f.get_tensor(k) for k in f.keys()]  # noqa: SIM118
            # 12 bytes an element; a file holds at least one
            assert sum(t.numel() * 4 for t in tensors) <= max(limit, 12)
        loaded = whole(torch.zeros, shapes)
        saved = Saved(folder)
        saved.check(shapes)
        for rank in range(readers):
            saved.fill(shards.share(loaded, rank, readers))
    assert equal(loaded, original)


def test_the_shares_of_all_ranks_are_near_equal_and_together_the_whole() -> None:
    original = whole(torch.randn)
    for ranks in range(1, 30):
        parts = [shards.share(original, rank, ranks) for rank in range(ranks)]
        sizes = [sum(s.numel for s in part) for part in parts]
        assert sum(sizes) == 24
        assert max(sizes) - min(sizes) <= 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shards.write(tmp_path / "actor", whole(torch.randn), 0, 1)
    return tmp_path / "actor"


def test_the_files_can_be_read_by_anybody(folder: Path) -> None:
    assert all(p.stat().st_mode & 0o444 == 0o444 for p in folder.iterdir())
    with safe_open(folder / "00000-of-00001.00000.safetensors", framework="pt") as f:
        assert json.loads(f.metadata()["slices"])["embed.weight"] == {"start": 0, "shape": [5, 3]}
        assert f.get_tensor("exp_avg_sq embed.weight").shape == (15,)


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        pytest.param({"norm.weight": (8,)}, "norm.weight is 7 there and 8 in the model", id="another size"),
        pytest.param({"embed.weight": (3, 5)}, "embed.weight is 5 x 3 there and 3 x 5 in the model", id="transposed"),
        pytest.param({"more": (2,)}, "more is not there and 2 in the model", id="a parameter that was not saved"),
        pytest.param({"scale": None}, "scale is a number there and not in the model", id="one that is not wanted"),
    ],
)
def test_another_model_is_refused(folder: Path, shapes: Mapping[str, tuple[int, ...] | None], sentence: str) -> None:
    wanted = {name: shape for name, shape in ({**SHAPES, **shapes}).items() if shape is not None}
    with pytest.raises(Incomplete, match=f"was saved of another model: {sentence}"):
        Saved(folder).check(wanted)


def test_a_rank_that_did_not_write_its_part_is_noticed(tmp_path: Path) -> None:
    original = whole(torch.randn)
    shards.write(tmp_path, shards.share(original, 0, 2), 0, 2)
    with pytest.raises(Incomplete, match=r"lacks 3 of the elements 0 to 15 of master of embed\.weight"):
        Saved(tmp_path).whole("embed.weight")


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(Incomplete, match="holds no weights"):
        Saved(tmp_path)
    (tmp_path / "00000.safetensors").write_text("half")
    with pytest.raises(Incomplete, match=r"00000\.safetensors cannot be read"):
        Saved(tmp_path)
