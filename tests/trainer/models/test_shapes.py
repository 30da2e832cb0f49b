"""Shapes from the headers of safetensors files."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.models import shapes


def test_the_shapes_of_all_files_are_read(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(3, 4), "b": torch.zeros(())}, tmp_path / "model-1.safetensors", {"format": "pt"})
    save_file({"c": torch.zeros(5, dtype=torch.bfloat16)}, tmp_path / "model-2.safetensors")
    assert shapes.read(tmp_path) == {"a": (3, 4), "b": (), "c": (5,)}


def test_a_file_of_another_length_than_its_header_says_is_named(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(3, 4)}, file)
    whole = file.read_bytes()
    for data in (whole[:-1], whole + b"0"):
        file.write_bytes(data)
        with pytest.raises(TrainerFailure) as failure:
            shapes.read(tmp_path, "rewards[0].model.path")
        assert failure.value.message == (
            f"rewards[0].model.path: {file} is not a safetensors file (it has {len(data)} bytes, and its header says "
            f"{len(whole)}): copy it anew"
        )


@pytest.mark.parametrize("data", [b"", b"\x05\0\0\0\0\0\0\0{}{}{}", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0[]"])
def test_a_file_that_is_something_else_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(TrainerFailure, match=r"model.safetensors is not a safetensors file \(.+\): copy it") as failure:
        shapes.read(tmp_path)
    assert failure.value.reason is FailureReason.INVALID_INPUT
