"""What the driver reads: the run of an attempt, in a ConfigMap that cannot change."""

from typing import Any

from simplerl_api import names
from simplerl_api.mounts import CHECKPOINT_MOUNT
from simplerl_api.run import RUN_FILE, Run
from simplerl_operator.build import metadata
from simplerl_operator.observe.job import Job


def run(job: Job) -> Run:
    """The run of the job's attempt."""
    assert job.spec is not None, "a job without a usable spec has no run"
    assert job.plan is not None, "a job with a usable spec has a plan"
    other = job.spec.checkpoint.resume_from
    return Run(
        name=job.name,
        namespace=job.namespace,
        uid=job.uid,
        attempt=job.attempt,
        submission_id=job.submission_id,
        spec=job.spec,
        plan=job.plan,
        output=f"{CHECKPOINT_MOUNT}/{names.output_folder(job.namespace, job.name, job.uid)}",
        resume_from=None if other is None else f"{CHECKPOINT_MOUNT}/{other.strip('/')}",
    )


def config_map(job: Job) -> dict[str, Any]:
    """The ConfigMap; it bears the RayCluster's name."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata.child(job, job.cluster_name, metadata.labels(job)),
        "immutable": True,
        "data": {RUN_FILE: run(job).model_dump_json(by_alias=True, exclude_none=True, indent=1)},
    }
