"""The training ranks as the driver sees them: one call goes to all of them, and all must answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from simplerl_api.failures import FailureReason
from simplerl_api.residence import Residence
from simplerl_trainer import answers
from simplerl_trainer.checkpoints.manifest import File
from simplerl_trainer.policy.protocol import Annotation, RankSetup, RankWork, StepPlan, Trajectory, Update

STARTUP_SECONDS = 900.0
CALL_SECONDS = 1800.0


class Ranks:
    """All ranks of a run, in the order of their numbers."""

    def __init__(self, actors: Sequence[Any], epochs: int) -> None:
        self.actors = actors
        self.residence: Residence
        """What stays on the GPUs; known once they have started."""
        self._epochs = epochs

    async def hold_port(self) -> int:
        """A port at which others will meet rank 0."""
        call = {"rank 0": self.actors[0].hold_port.remote()}
        (port,) = await answers.within(STARTUP_SECONDS, "holding a port", call, FailureReason.LOST_RANK)
        return int(port)

    async def start(self, setups: Sequence[RankSetup]) -> dict[str, str]:
        """Loads the models; returns versions."""
        calls = {f"rank {s.rank}": a.start.remote(s) for a, s in zip(self.actors, setups, strict=True)}
        versions: list[dict[str, str]] = await answers.within(
            STARTUP_SECONDS, "loading the model", calls, FailureReason.LOST_RANK
        )
        self.residence = (await self._all("telling what stays on the GPU", "residence"))[0]
        return versions[0]

    async def annotate(
        self, plan: StepPlan, trajectories: Mapping[int, Trajectory], step: int, kl_coefficient: float
    ) -> Annotation:
        """Log-probabilities, values and advantages of a step's samples stay on the ranks that the plan gives them."""
        for number, batch in enumerate(plan):
            # under ZeRO-3 a rank with fewer passes than the others leaves them waiting for ever
            if len(counts := {len(packs) for packs in batch}) != 1:
                raise ValueError(f"ranks have {sorted(counts)} packs in optimizer batch {number}: give each as many")
        works = [
            RankWork(
                [[[trajectories[i] for i in pack] for pack in batch[rank]] for batch in plan], step, kl_coefficient
            )
            for rank in range(len(self.actors))
        ]
        calls = {f"rank {r}": a.annotate.remote(w) for r, (a, w) in enumerate(zip(self.actors, works, strict=True))}
        found: list[Annotation] = await answers.within(
            CALL_SECONDS, "annotating samples", calls, FailureReason.LOST_RANK
        )
        return replace(found[0], judged={i: scores for part in found for i, scores in part.judged.items()})

    async def update(self, batch: int, epoch: int) -> Update:
        """One optimizer step of actor and critic."""
        return (await self._all("updating the weights", "update", batch, epoch))[0]

    def optimizer_steps(self, batches: int) -> Sequence[tuple[int, int]]:
        """(batch, epoch) of each optimizer step of a step whose plan has so many optimizer batches."""
        return [(batch, epoch) for epoch in range(self._epochs) for batch in range(batches)]

    async def offload(self) -> None:
        """Gives GPU memory to the engines."""
        await self._all("leaving GPU memory", "offload")

    async def reload(self) -> None:
        """Takes GPU memory back."""
        await self._all("taking GPU memory", "reload")

    async def save(self, folder: str) -> dict[str, File]:
        """Writes the ranks' part of a checkpoint; returns its files once they are on disk."""
        written: list[dict[str, File]] = await self._all(f"saving {folder}", "save", folder)
        return {name: file for files in written for name, file in files.items()}

    async def load(self, folder: str) -> None:
        """Takes up the state of a checkpoint."""
        await self._all(f"loading {folder}", "load", folder)

    async def export(self, folder: str, notes: Mapping[str, str]) -> None:
        """Writes the policy as a Hugging Face folder, with `notes` in it: texts by their file's name."""
        await self._all(f"exporting to {folder}", "export", folder, notes)

    async def _all(self, doing: str, method: str, *args: Any) -> list[Any]:
        calls = {f"rank {r}": getattr(a, method).remote(*args) for r, a in enumerate(self.actors)}
        return await answers.within(CALL_SECONDS, doing, calls, FailureReason.LOST_RANK)
