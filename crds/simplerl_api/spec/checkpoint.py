"""Where and how often the run is saved."""

from pydantic import Field

from simplerl_api.struct import Struct, Text


class Checkpoint(Struct):
    """Checkpoints, samples, metrics and the exported model lie in `<namespace>/<name>-<uid8>/` of the claim."""

    claim_name: Text | None = None
    """A PersistentVolumeClaim that all pods can write (ReadWriteMany where there are several nodes). Absent: nothing
    outlives the pods."""
    every_steps: int = Field(default=4, ge=1, le=1_000_000)
    """A checkpoint after every so many steps, and after the last."""
    keep: int = Field(default=3, ge=1, le=1000)
    """Newest checkpoints that are kept; older ones are removed after a newer one is complete."""
    best: Text | None = None
    """Name of the evaluation data set whose best accuracy leaves the exported folder `best-model/` with `best.json`
    {step, dataset, accuracy} in it. Absent: the first of evaluation.datasets."""
