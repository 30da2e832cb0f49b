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

from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.training import Offload, Precision
from simplerl_trainer.policy.protocol import Update
from simplerl_trainer.policy.rank import Rank

GROUPS = (1, 2)
MODEL = "qwen2-tied"
KINDS = {
    "FP32": (NO_KL, Precision.FP32, 0),
    "BF16": (NO_KL, Precision.BF16, 0),
    "GRPO": (Algorithm.model_validate({"grpo": {}, "kl": {"coefficient": 0.0}}), Precision.FP32, 0),
    "warm-up": (NO_KL, Precision.FP32, 1),
}
"""By name: an algorithm (GRPO has no critic), a precision, and the steps in which only the critic learns, so that the
actor's optimizer has no state yet when it is saved."""
STAYS, ON_HOST = Offload(), Offload(optimizer=True, parameters=True)


class Resuming(Process):
    """Saves a run in its middle and goes on; resumes the same run from what any group saved."""

    def folder_of(self, ranks: int, stage: int, kind: str) -> Path:
        return self.folder / f"saved-{ranks}-{stage}-{kind}"

    def begin(self, stage: int, kind: str, offload: Offload = STAYS) -> Rank:
        algorithm, precision, warmup = KINDS[kind]
        critic = TRAINING.critic.model_copy(update={"warmup_steps": warmup})
        training = TRAINING.model_copy(update={"offload": offload, "critic": critic})
        return self.start(MODEL, stage, algorithm, precision=precision, training=training)

    def go_on(self, rank: Rank) -> dict[str, Any]:
        """Two more optimizer steps."""
        annotation = rank.annotate(self.work(step=2))
        updates: Sequence[Update] = [rank.update(batch, 0) for batch in (0, 1)]
        return {"annotation": annotation.metrics, "updates": [u.metrics for u in updates]}

    def save(self, stage: int, kind: str) -> dict[str, Any]:
        """Two optimizer steps, a checkpoint, and how the run went on."""
        rank = self.begin(stage, kind)
        rank.annotate(self.work())
        for batch in (0, 1):
            rank.update(batch, 0)
        folder = self.folder_of(self.ranks, stage, kind)
        self.write(rank, folder)
        self.write_asleep(rank, folder.with_name(f"{folder.name}-asleep"))
        return self.go_on(rank)

    def write_asleep(self, rank: Rank, folder: Path) -> None:
        """What a rank saves and exports while all that it trains is out of the device's memory."""
        for held in rank._memory.trained:
            held.leave()
        self.write(rank, folder)
        rank.export(str(folder.with_name(f"{folder.name}-model")), {"note.txt": "asleep"})
        for held in rank._memory.trained:
            held.come_back()

    def write(self, rank: Rank, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        rank.save(str(folder))

    def resume(self, ranks: int, saved_stage: int, stage: int, kind: str, offload: Offload = STAYS) -> dict[str, Any]:
        """How the run goes on that `ranks` ranks saved at another stage."""
        rank = self.begin(stage, kind, offload)
        folder = self.folder_of(ranks, saved_stage, kind)
        rank.load(str(folder))
        self.write(rank, folder.with_name(f"{folder.name}-again-{self.ranks}-{stage}"))
        return self.go_on(rank)

    def meet(self) -> None:
        """Waits until the other group has saved too."""
        (self.folder / f"has-saved-{self.ranks}-{self.rank}").touch()
        bound = time.monotonic() + 500
        wanted = [self.folder / f"has-saved-{ranks}-{r}" for ranks in GROUPS for r in range(ranks)]
        while not all(w.exists() for w in wanted):
            assert time.monotonic() < bound, f"not all of {wanted} came"
            time.sleep(0.05)

    def everything(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        other = 3 - self.ranks
        for stage in (0, 1, 2, 3):
            found[f"saved {stage}"] = self.save(stage, "FP32")
        for stage in (0, 1, 3):
            self.save(stage, "BF16")
        for kind in ("GRPO", "warm-up"):
            found[f"saved {kind}"] = self.save(1, kind)
        self.meet()
        for stage in (0, 1, 2, 3):
            for ranks, saved in ((other, 3 - stage), (self.ranks, (stage + 2) % 4)):
                found[f"{ranks} {saved} -> {stage}"] = self.resume(ranks, saved, stage, "FP32")
        found[f"{other} 1 -> 3 on the host"] = self.resume(other, 1, 3, "FP32", ON_HOST)
        for kind in ("GRPO", "warm-up"):
            found[f"{other} 1 -> 3 {kind}"] = self.resume(other, 1, 3, kind)
        for saved, stage in ((3, 1), (1, 3), (0, 2)):
            self.resume(other, saved, stage, "BF16")
        return found


def main() -> None:
    torch.set_num_threads(1)
    rank, ranks, port = (int(x) for x in sys.argv[1:4])
    folder = Path(sys.argv[4])
    found = Resuming(rank, ranks, port, folder).everything()
    torch.save(found, folder / f"resumed-{ranks}-{rank}.pt")


if __name__ == "__main__":
    main()
