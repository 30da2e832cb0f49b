"""One process of a group of ranks that saves at every ZeRO stage, and resumes what it and another group saved.

    python resume_process.py RANK RANKS PORT FOLDER

FOLDER holds the models and trajectories.pt; this writes FOLDER/resumed-<RANKS>-<RANK>.pt.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rank_process import NO_KL, TRAINING, Process

from simplerl_api.spec.training import Offload, Precision
from simplerl_trainer.policy.protocol import Update
from simplerl_trainer.policy.rank import Rank

GROUPS = (1, 2)
MODEL = "qwen2-tied"
STAYS, ON_HOST = Offload(), Offload(optimizer=True, parameters=True)


class Resuming(Process):
    """Saves a run in its middle and goes on; resumes the same run from what any group saved."""

    def folder_of(self, ranks: int, stage: int, precision: Precision) -> Path:
        return self.folder / f"saved-{ranks}-{stage}-{precision}"

    def begin(self, stage: int, precision: Precision, offload: Offload = STAYS) -> Rank:
        training = TRAINING.model_copy(update={"offload": offload})
        return self.start(MODEL, stage, NO_KL, precision=precision, training=training)

    def go_on(self, rank: Rank) -> dict[str, Any]:
        """Two more optimizer steps."""
        annotation = rank.annotate(self.work(step=2))
        updates: Sequence[Update] = [rank.update(batch, 0) for batch in (0, 1)]
        return {"annotation": annotation.metrics, "updates": [u.metrics for u in updates]}

    def save(self, stage: int, precision: Precision) -> dict[str, Any]:
        """Two optimizer steps, a checkpoint, and how the run went on."""
        rank = self.begin(stage, precision)
        rank.annotate(self.work())
        for batch in (0, 1):
            rank.update(batch, 0)
        folder = self.folder_of(self.ranks, stage, precision)
        self.write(rank, folder)
        self.write_asleep(rank, folder.with_name(f"{folder.name}-asleep"))
        return self.go_on(rank)

    def write_asleep(self, rank: Rank, folder: Path) -> None:
        """What a rank saves and exports while all that it trains is out of the device's memory."""
        for held in rank._trained_memory:
            held.leave()
        self.write(rank, folder)
        rank.export(str(folder.with_name(f"{folder.name}-model")), {"note.txt": "asleep"})
        for held in rank._trained_memory:
            held.come_back()

    def write(self, rank: Rank, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        rank.save(str(folder))

    def resume(
        self, ranks: int, saved_stage: int, stage: int, precision: Precision, offload: Offload = STAYS
    ) -> dict[str, Any]:
        """How the run goes on that `ranks` ranks saved at another stage."""
        rank = self.begin(stage, precision, offload)
        folder = self.folder_of(ranks, saved_stage, precision)
        rank.load(str(folder))
        self.write(rank, folder.with_name(f"{folder.name}-again-{self.ranks}-{stage}"))
        return self.go_on(rank)

    def meet(self) -> None:
        """Waits until the other group has saved too."""
        (self.folder / f"has-saved-{self.ranks}-{self.rank}").touch()
        bound = time.monotonic() + 240
        wanted = [self.folder / f"has-saved-{ranks}-{r}" for ranks in GROUPS for r in range(ranks)]
        while not all(w.exists() for w in wanted):
            assert time.monotonic() < bound, f"not all of {wanted} came"
            time.sleep(0.05)

    def everything(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        other = 3 - self.ranks
        for stage in (0, 1, 2, 3):
            found[f"saved {stage}"] = self.save(stage, Precision.FP32)
        for stage in (0, 1, 3):
            self.save(stage, Precision.BF16)
        self.meet()
        for stage in (0, 1, 2, 3):
            for ranks, saved in ((other, 3 - stage), (self.ranks, (stage + 2) % 4)):
                found[f"{ranks} {saved} -> {stage}"] = self.resume(ranks, saved, stage, Precision.FP32)
        found[f"{other} 1 -> 3 on the host"] = self.resume(other, 1, 3, Precision.FP32, ON_HOST)
        for saved, stage in ((3, 1), (1, 3), (0, 2)):
            self.resume(other, saved, stage, Precision.BF16)
        return found


def main() -> None:
    torch.set_num_threads(1)
    rank, ranks, port = (int(x) for x in sys.argv[1:4])
    folder = Path(sys.argv[4])
    found = Resuming(rank, ranks, port, folder).everything()
    torch.save(found, folder / f"resumed-{ranks}-{rank}.pt")


if __name__ == "__main__":
    main()
