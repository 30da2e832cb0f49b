"""Model folders on their way to other nodes."""

import os
from pathlib import Path

import pytest

from simplerl_trainer.models.folder import pack, unpack


def test_a_folder_comes_back_and_everyone_may_read_it(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.mkdir()
    (source / "config.json").write_bytes(b"{}")
    (source / "model.safetensors").write_bytes(os.urandom(1000))
    (source / "model.safetensors").chmod(0o600)
    unpack(pack(source), tmp_path / "deep" / "b")
    assert pack(tmp_path / "deep" / "b") == pack(source)
    assert [oct(p.stat().st_mode & 0o777) for p in (tmp_path / "deep" / "b").iterdir()] == ["0o644", "0o644"]


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    unpack({"a": b"1"}, tmp_path / "m")
    unpack({"a": b"2"}, tmp_path / "m")
    assert pack(tmp_path / "m") == {"a": b"1"}


def test_names_do_not_lead_out_of_the_folder_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not the name of a file"):
        unpack({"a": b"1", "../b": b"2"}, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
