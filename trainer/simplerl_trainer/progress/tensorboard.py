"""TensorBoard's event files in the run's folder: `tensorboard --logdir DIR/tensorboard`."""

from collections.abc import Mapping
from pathlib import Path

from simplerl_api import yaml12
from simplerl_api.run import Run

FOLDER = "tensorboard"


class TensorBoard:
    """Scalars by step. Steps that a resumed run takes again are shown once: those of the earlier attempt are purged."""

    name = "tensorboard"
    id = None

    def __init__(self, run: Run, steps_done: int) -> None:
        self._run = run
        self._steps_done = steps_done

    def open(self) -> None:
        from tensorboardX import SummaryWriter  # protobuf and numpy: only where it is used

        folder = Path(self._run.output) / FOLDER
        # a run that starts anew evaluates its start again, as step 0
        again = self._steps_done + 1 if self._steps_done else 0
        self._writer = SummaryWriter(str(folder), purge_step=again if folder.exists() else None)
        if self._steps_done == 0:
            spec = yaml12.dump(self._run.spec.document())
            self._writer.add_text("spec", "".join(f"    {line}\n" for line in spec.splitlines()), 0)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self, failed: bool) -> None:
        self._writer.close()

    def kill(self) -> None:
        """Nothing lives outside of this process."""
