"""Replacing a folder: a reader finds the old one or the new one, and a crash leaves one of the two."""

import os
import shutil
from pathlib import Path

from simplerl_trainer.checkpoints.manifest import sync


def partial_of(target: Path) -> Path:
    """Where the new folder is made, beside the one that it replaces."""
    return target.with_name(f"{target.name}.partial")


def replace(target: Path) -> None:
    """Puts the finished `partial_of(target)` in the place of `target`."""
    old = _old(target)
    if target.exists():  # no rename replaces a folder that holds files: it stands aside for a moment
        shutil.rmtree(old, ignore_errors=True)
        os.replace(target, old)
    os.replace(partial_of(target), target)
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def repair(target: Path) -> None:
    """Puts back the folder that stood aside where a writer was killed between the two renames."""
    if _old(target).is_dir() and not target.exists():
        os.replace(_old(target), target)


def _old(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")
