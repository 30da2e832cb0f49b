"""Disks that are soon full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(at: Path, mib: int) -> Iterator[Path]:
    """An empty disk of so many MiB in memory; it is gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a disk")
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)
