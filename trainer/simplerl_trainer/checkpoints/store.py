"""The folder of a run's checkpoints: `step-000020/` and so on, each one versioned unit, complete or not there.

An attempt writes `step-000020.attempt-2/`, which becomes `step-000020/` once its manifest is in it: attempts never
write into one another's files, and a name without `attempt` is whole unless its disk lost something. One process (the
driver) makes folders, writes manifests, renames and removes; ranks only add files to the folder that it made.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_trainer.checkpoints import manifest
from simplerl_trainer.checkpoints.manifest import File, Incomplete
from simplerl_trainer.checkpoints.room import writing

CHECKPOINTS = "checkpoints"
"""Their folder's name in a run's."""
STATE = "driver.json"
"""The driver's own part of a checkpoint: step, place in the data, controllers, evaluations and so on."""

_FOLDER = re.compile(r"step-(\d{6,})")
_PARTIAL = re.compile(r"step-(\d{6,})\.attempt-(\d+)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint."""

    step: int
    """Finished steps."""
    folder: Path


@dataclass(frozen=True, slots=True)
class Skipped:
    """A checkpoint that cannot be used."""

    name: str
    """Of its folder."""
    why: str
    """Names the file and what is wrong with it."""


def folder_of(root: Path, step: int) -> Path:
    """The folder of the checkpoint after a step."""
    return root / f"step-{step:06}"


def begin(root: Path, step: int, attempt: int) -> Path:
    """An empty folder to write the checkpoint after `step` into; what earlier writers left half-written is removed.

    Raises TrainerFailure(CheckpointFailed) naming the folder and its room.
    """
    folder = root / f"{folder_of(root, step).name}.attempt-{attempt}"
    with writing(f"checkpoint {folder} cannot be begun", root):
        for left in _partial(root, attempt):
            shutil.rmtree(left, ignore_errors=True)
        folder.mkdir(parents=True)
    return folder


def finish(folder: Path, step: int, files: Mapping[str, File], state: Mapping[str, Any]) -> Checkpoint:
    """Makes the checkpoint in `folder` complete: `files` are what the ranks wrote, `state` is the driver's.

    Raises TrainerFailure(CheckpointFailed) naming what is missing or could not be written.
    """
    root = folder.parent
    final = folder_of(root, step)
    with writing(f"checkpoint {folder} could not be finished", root):
        manifest.replace_file(folder / STATE, json.dumps(dict(state), indent=2) + "\n")
        manifest.complete(folder, step, {**files, STATE: manifest.settled(folder / STATE)})
        # one of the same step is there where this run could not use it
        shutil.rmtree(final, ignore_errors=True)
        os.replace(folder, final)
        manifest.sync(root)
    return Checkpoint(step, final)


def abandon(folder: Path) -> None:
    """Gives back the room of a checkpoint that could not be finished."""
    shutil.rmtree(folder, ignore_errors=True)


def state_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The driver's part of a checkpoint. Raises TrainerFailure(CheckpointFailed) where it cannot be read."""
    with writing(f"checkpoint {checkpoint.folder} cannot be read", checkpoint.folder):
        state = json.loads((checkpoint.folder / STATE).read_text(encoding="utf-8"))
        if not isinstance(state, dict):
            raise Incomplete(f"{STATE} holds {type(state).__name__} instead of an object")
        return state


def newest(root: Path) -> tuple[Checkpoint | None, Sequence[Skipped]]:
    """The newest checkpoint whose files are all as they were written, and the newer ones that are not."""
    skipped = [Skipped(p.name, f"{p} was not finished by its writer") for p in sorted(_partial(root))]
    for step, folder in sorted(_folders(root), reverse=True):
        try:
            _verified(step, folder)
        except Incomplete as e:
            skipped.append(Skipped(folder.name, str(e)))
        else:
            return Checkpoint(step, folder), skipped
    return None, skipped


def at(root: Path, step: int) -> Checkpoint:
    """The checkpoint after a step. Raises Incomplete naming what is wrong with it, or the steps that there are."""
    folder = folder_of(root, step)
    if not folder.is_dir():
        steps = ", ".join(str(s) for s, _ in sorted(_folders(root))) or "none"
        raise Incomplete(f"{root} has no checkpoint after step {step}, but after: {steps}")
    _verified(step, folder)
    return Checkpoint(step, folder)


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
    """Removes all but the `keep` newest complete checkpoints up to `newest_step`, and unsound ones before it.

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


def _folders(root: Path) -> list[tuple[int, Path]]:
    if not root.is_dir():
        return []
    named = ((_FOLDER.fullmatch(p.name), p) for p in root.iterdir() if p.is_dir())
    return [(int(match[1]), p) for match, p in named if match]


def _partial(root: Path, newest_attempt: int | None = None) -> list[Path]:
    """Folders that were not finished, of attempts up to `newest_attempt`."""
    if not root.is_dir():
        return []
    named = ((_PARTIAL.fullmatch(p.name), p) for p in root.iterdir() if p.is_dir())
    return [p for match, p in named if match and (newest_attempt is None or int(match[2]) <= newest_attempt)]


def _verified(step: int, folder: Path) -> None:
    if (found := manifest.verify(folder).step) != step:
        raise Incomplete(f"{folder / manifest.NAME} is of step {found}")
