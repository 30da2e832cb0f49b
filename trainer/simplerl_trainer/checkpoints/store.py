"""The folder of a run's checkpoints: `step-000020/` and so on, each one versioned unit, complete or not there."""

import json
import logging
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints import manifest
from simplerl_trainer.checkpoints.manifest import Incomplete

STATE = "driver.json"
"""The driver's own part of a checkpoint: step, place in the data, random numbers, evaluations and so on."""

_log = logging.getLogger(__name__)
_FOLDER = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint."""

    step: int
    """Finished steps."""
    folder: Path


def folder_of(root: Path, step: int) -> Path:
    """The folder of the checkpoint after a step."""
    return root / f"step-{step:06}"


def begin(root: Path, step: int) -> Path:
    """An empty folder for the checkpoint after `step`; what an earlier writer left there is removed."""
    folder = folder_of(root, step)
    with _failing(f"checkpoint {folder} cannot be begun"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    return folder


def finish(folder: Path, step: int, names: Iterable[str], state: dict[str, Any]) -> Checkpoint:
    """Makes the checkpoint in `folder` complete: `names` are the files that the ranks wrote, `state` is the driver's.

    Raises TrainerFailure(CHECKPOINT_FAILED) naming what is missing or could not be written.
    """
    with _failing(f"checkpoint {folder} could not be finished"):
        manifest.replace_file(folder / STATE, json.dumps(state, indent=2) + "\n")
        manifest.complete(folder, step, {*names, STATE})
    return Checkpoint(step, folder)


def state_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The driver's part of a checkpoint. Raises TrainerFailure(CHECKPOINT_FAILED) where it cannot be read."""
    with _failing(f"checkpoint {checkpoint.folder} cannot be read"):
        state = json.loads((checkpoint.folder / STATE).read_text(encoding="utf-8"))
        if not isinstance(state, dict):
            raise Incomplete(f"{STATE} holds {type(state).__name__} instead of an object")
        return state


def newest(root: Path) -> Checkpoint | None:
    """The newest checkpoint whose files are all as they were written; others are skipped with a warning."""
    for step, folder in sorted(_folders(root), reverse=True):
        try:
            _verified(step, folder)
        except Incomplete as e:
            _log.warning("checkpoint %s is skipped: %s", folder.name, e)
        else:
            return Checkpoint(step, folder)
    return None


def complete(root: Path) -> list[Checkpoint]:
    """Checkpoints that have a manifest, oldest first; their files are not read."""
    found = []
    for step, folder in sorted(_folders(root)):
        try:
            manifest.read(folder)
        except Incomplete:
            continue
        found.append(Checkpoint(step, folder))
    return found


def prune(root: Path, keep: int, newest_step: int) -> list[Path]:
    """Removes all but the `keep` newest complete checkpoints up to `newest_step`, and partial ones before it.

    Call it once the checkpoint after `newest_step` is complete: nothing is removed where it is not. Returns the folders
    that were removed.
    """
    have = [c.step for c in complete(root) if c.step <= newest_step]
    if newest_step not in have:
        return []
    kept = set(have[-max(keep, 1) :])
    doomed = [folder for step, folder in sorted(_folders(root)) if step < newest_step and step not in kept]
    for folder in doomed:
        # without its manifest first: a removal that is cut short leaves no checkpoint that looks whole
        (folder / manifest.NAME).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
    return doomed


@contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, Incomplete) as e:
        raise TrainerFailure(FailureReason.CHECKPOINT_FAILED, f"{what}: {e}") from e


def _folders(root: Path) -> list[tuple[int, Path]]:
    if not root.is_dir():
        return []
    named = ((_FOLDER.fullmatch(p.name), p) for p in root.iterdir() if p.is_dir())
    return [(int(match[1]), p) for match, p in named if match]


def _verified(step: int, folder: Path) -> None:
    if (found := manifest.verify(folder).step) != step:
        raise Incomplete(f"its manifest is of step {found}")
