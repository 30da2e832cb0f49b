"""Running a job without Kubernetes: the same driver, on this machine or on a Ray cluster that is there already."""

import hashlib
import json
from pathlib import Path
from typing import Any

from simplerl_api import __version__, names, run, validation
from simplerl_api.plan import make_plan
from simplerl_api.spec.cluster import MAX_GPUS_PER_NODE
from simplerl_api.spec.job import SimpleRLJob, Spec
from simplerl_trainer.checkpoints import store
from simplerl_trainer.planning import model_shape

NAMESPACE = "local"
MAY_CHANGE = (
    "checkpoint",
    "cluster",
    "placement",
    "recovery",
    "rollout.elastic",
    "rollout.engines",
    "rollout.enginesPerGpu",
    "rollout.gpuMemoryUtilization",
    "rollout.maxNumBatchedTokens",
    "rollout.maxNumSeqs",
    "rollout.tensorParallelSize",
    "tracking",
    "training.gradientAccumulationSteps",
    "training.gradientCheckpointing",
    "training.maxTokensPerMicroBatch",
    "training.offload",
    "training.zeroStage",
)
"""Fields that say where and how fast a run is computed, not what: it may go on with other values of them."""
_AS_GOOD_AS_EMPTY = {"lost+found", "run.partial"}
"""What a new file system holds, and what a kill at the very start of a run leaves."""


class OtherRun(ValueError):
    """The folder holds another run, or cannot hold one."""


def prepare(document: dict[str, Any], output: Path, *, own_ray: bool) -> run.Run:
    """The run of a job's document in a folder, which then holds `run.json`.

    A folder that holds this very run, but for fields that MAY_CHANGE, is taken up where it stopped. With a Ray of our
    own every slot is on this machine, whatever cluster.gpusPerNode says. Raises InvalidJob, PlanError, OtherRun.
    """
    job = validation.parse(document)
    if own_ray:
        if job.spec.rollout.elastic is not None and (faults := validation.faults(document)):
            raise validation.InvalidJob(faults)  # of nodes, which one machine does not have
        document = _one_node(document)
    if faults := validation.faults(document):
        raise validation.InvalidJob(faults)
    made = _run(validation.parse(document), output)
    file = output / run.RUN_FILE
    if _exists(file, output):
        before = _read(file, output)
        ours, theirs = _what(made.spec), _what(before.spec)
        if ours != theirs:
            changed = sorted(k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k))
            raise OtherRun(
                f"--output {output} holds a run whose {', '.join(f'spec.{c}' for c in changed)} differs from this "
                "file's: choose another folder, or remove that one"
            )
        made = _at(made, before.attempt + 1)
    else:
        _check_empty(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")  # a kill in the middle leaves no half of a run
        partial.write_text(json.dumps(made.document(), indent=1) + "\n", encoding="utf-8")
        partial.replace(file)
    except OSError as e:
        raise _unwritable(output, e) from e
    return made


def _exists(file: Path, output: Path) -> bool:
    try:
        return file.exists()
    except OSError as e:  # a name that is too long, a folder that may not be entered
        raise _unwritable(output, e) from e


def _check_empty(output: Path) -> None:
    """Raises OtherRun where a folder without a run holds something: a run would write between it and over it."""
    try:
        found = sorted(entry.name for entry in output.iterdir()) if output.is_dir() else []
    except OSError as e:
        raise _unwritable(output, e) from e
    found = [name for name in found if name not in _AS_GOOD_AS_EMPTY]
    if store.CHECKPOINTS in found:
        raise OtherRun(
            f"--output {output} holds {store.CHECKPOINTS} of a run that did not begin here (there is no "
            f"{run.RUN_FILE}): choose another folder, and name this one in checkpoint.resumeFrom to go on from there"
        )
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise OtherRun(
            f"--output {output} holds {found[0]}{more}, but no run ({run.RUN_FILE}): choose an empty folder or one "
            "that is not there yet"
        )


def _unwritable(output: Path, e: OSError) -> OtherRun:
    return OtherRun(f"--output {output} cannot be written ({e.strerror}): choose another folder")


def _what(spec: Spec) -> dict[str, Any]:
    """The spec's document without the fields that may change."""
    document = spec.document()
    for path in MAY_CHANGE:
        *sections, name = path.split(".")
        holder = document
        for section in sections:
            holder = holder.get(section, {})
        holder.pop(name, None)
    return document


def _read(file: Path, output: Path) -> run.Run:
    try:
        return run.read(file)
    except ValueError as e:
        raise OtherRun(
            f"--output {output} holds a {file.name} that this version cannot read: choose another folder, or remove "
            "that one"
        ) from e


def _one_node(document: dict[str, Any]) -> dict[str, Any]:
    """All slots on one node or, where they are more than gpusPerNode may say, on as few equal ones as can be: Ray packs
    them onto this machine all the same."""
    spec = document["spec"]
    gpus = spec["cluster"]["gpus"]
    per_node = max(d for d in range(1, min(gpus, MAX_GPUS_PER_NODE) + 1) if gpus % d == 0)
    one = {**spec, "cluster": {**spec["cluster"], "gpusPerNode": per_node}}
    if (elastic := spec.get("rollout", {}).get("elastic")) is not None:
        # no node comes or goes: all engines start
        rollout = {name: value for name, value in spec["rollout"].items() if name not in ("elastic", "enginesPerGpu")}
        one["rollout"] = rollout | {"engines": elastic["maxEngines"]}
    return {**document, "spec": one}


def _run(job: SimpleRLJob, output: Path) -> run.Run:
    """The first attempt."""
    image = f"simplerl {__version__} on this machine"
    plan = make_plan(job.spec, image, parameters=model_shape.parameters(job.spec))
    other = job.spec.checkpoint.resume_from
    uid = hashlib.sha256(str(output.resolve()).encode()).hexdigest()[:32]
    return run.Run(
        name=job.metadata.name,
        namespace=NAMESPACE,
        uid=uid,
        attempt=1,
        submission_id=names.cluster(job.metadata.name, uid, 1),
        spec=job.spec,
        # what was said of the claim holds for the folder; nobody makes or removes nodes
        plan=plan.steady().model_copy(update={"durable": True}),
        output=str(output.resolve()),
        resume_from=None if other is None else str(Path(other).resolve()),
        progress_port=0,
    )


def _at(made: run.Run, attempt: int) -> run.Run:
    own = {"attempt": attempt, "submission_id": names.cluster(made.name, made.uid, attempt)}
    return made.model_copy(update=own)
