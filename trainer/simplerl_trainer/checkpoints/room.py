"""Writes that fail: one sentence with the path and the room on its disk."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints.manifest import Incomplete


@contextmanager
def writing(what: str, folder: Path) -> Iterator[None]:
    """Runs writes below `folder`; what cannot be written becomes TrainerFailure(CheckpointFailed).

    `what` begins the sentence, for example "checkpoint /checkpoints/run/step-000020 could not be written".
    """
    try:
        yield
    except (OSError, ValueError, TypeError, Incomplete) as e:
        raise TrainerFailure(FailureReason.CHECKPOINT_FAILED, f"{what}: {_why(e)}{_room(folder)}") from e


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _room(folder: Path) -> str:
    """Free and all bytes of the disk that a folder lies on, or of the nearest one above that is there."""
    for place in (folder, *folder.parents):
        try:
            usage = shutil.disk_usage(place)
        except OSError:
            continue
        return f" ({_size(usage.free)} of {_size(usage.total)} are free at {place})"
    return ""


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
