"""The fence: the number of the newest attempt, in the run's folder. An older attempt that sees it stops writing.

A node that is cut off from the cluster goes on training although its pods were replaced; it must not disturb what the
next attempt writes.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.checkpoints.manifest import replace_file

NAME = "fence.json"


@dataclass(frozen=True, slots=True)
class Fence:
    """An attempt's claim to a run's folder."""

    output: Path
    attempt: int

    def claim(self) -> None:
        """Stops all older attempts. Raises TrainerFailure: Superseded where a newer one has claimed the folder,
        CheckpointFailed where it cannot be written."""
        self.check()
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            replace_file(self.output / NAME, json.dumps({"attempt": self.attempt}) + "\n")
        except OSError as e:
            raise TrainerFailure(
                FailureReason.CHECKPOINT_FAILED,
                f"the run's folder {self.output} cannot be written ({e.strerror}): check the claim's permissions and "
                "room",
            ) from e

    def check(self) -> None:
        """Called before each write that a newer attempt would miss or read. Raises TrainerFailure(Superseded)."""
        path = self.output / NAME
        try:
            newest = int(json.loads(path.read_text(encoding="utf-8"))["attempt"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise TrainerFailure(
                FailureReason.CHECKPOINT_FAILED, f"{path} cannot be read ({e!r}): remove it if no other attempt runs"
            ) from e
        if newest > self.attempt:
            raise TrainerFailure(
                FailureReason.SUPERSEDED,
                f"attempt {newest} writes into {self.output}: attempt {self.attempt} stops so as not to disturb it",
            )
