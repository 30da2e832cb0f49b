"""Where and how often the run is saved."""

from typing import Annotated

from pydantic import Field

from simplerl_api.struct import Struct, Text

RESUME_PATTERN = r"^/?[^./][^/]*(/[^./][^/]*)*/?$"
"""A path none of whose parts begins with a dot."""


class Checkpoint(Struct):
    """Checkpoints, samples, metrics and the exported model lie in `<namespace>/<name>-<uid8>/` of the claim."""

    claim_name: Text | None = None
    """A PersistentVolumeClaim that all pods can write (ReadWriteMany where there are several nodes). Absent: nothing
    outlives the pods."""
    every_steps: int = Field(default=4, ge=1, le=1_000_000)
    """A checkpoint after every so many steps, and after the last."""
    keep: int = Field(default=3, ge=1, le=1000)
    """Newest checkpoints that are kept; older ones are removed after a newer one is complete."""
    resume_from: Annotated[str, Field(min_length=1, max_length=1024, pattern=RESUME_PATTERN)] | None = None
    """Folder of another run, from whose newest checkpoint this one goes on where it has none of its own:
    `<namespace>/<name>-<uid8>` or another folder of the claim; without Kubernetes a folder of the machine."""
    best: Text | None = None
    """Name of the evaluation data set whose best accuracy leaves the exported folder `best-model/` with `best.json`
    {step, dataset, accuracy} in it. Absent: the first of evaluation.datasets."""
