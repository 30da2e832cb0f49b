"""What a driver reads at its start: one JSON file, the same on a laptop and in the pods."""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from simplerl_api.mounts import RUN_FOLDER
from simplerl_api.plan import Plan
from simplerl_api.progress import PORT
from simplerl_api.spec.job import Spec
from simplerl_api.status import Adaptation
from simplerl_api.struct import Struct

RUN_FILE = "run.json"
ENTRYPOINT = f"python -m simplerl_trainer.driver {RUN_FOLDER}/{RUN_FILE}"
"""Entrypoint of the Ray job: constant, so that no text of a user's reaches a shell."""


def entrypoint(attempt: int, submission_id: str, cluster: str, adaptations: Sequence[Adaptation] = ()) -> str:
    """Entrypoint of an attempt. One that is submitted to an earlier attempt's RayCluster finds that one's run file,
    which cannot change: its own number and id come as arguments (a number, and a name made of a-z, 0-9 and -), and so
    do adaptations (names of fields, and numbers or true)."""
    if submission_id == cluster:
        return ENTRYPOINT
    adapts = "".join(f" --adapt {one.path}={json.dumps(one.to)}" for one in adaptations)
    return f"{ENTRYPOINT} --attempt {attempt} --submission {submission_id}{adapts}"


class Run(Struct):
    """One attempt of a job."""

    name: str
    """Name of the job."""
    namespace: str
    """Its namespace; `local` outside Kubernetes."""
    uid: str
    """Its uid."""
    attempt: int = Field(ge=1)
    """Number of the attempt, from 1."""
    submission_id: str
    """Name of the attempt: `<name>-<uid5>-<attempt>`."""
    spec: Spec
    """The effective spec."""
    plan: Plan
    """The plan made of it."""
    output: str
    """Folder of the run's checkpoints, metrics, samples and exported model."""
    resume_from: str | None = None
    """Folder of another run, from whose newest checkpoint this one goes on where it has none of its own."""
    progress_port: int = Field(default=PORT, ge=0, le=65535)
    """Port of /progress; 0 takes a free one."""


def read(path: Path) -> Run:
    """The run in a JSON file."""
    return Run.model_validate_json(path.read_text(encoding="utf-8"))
