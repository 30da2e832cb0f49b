"""Names, labels and the owner that every child of a job bears."""

from typing import Any

from simplerl_api import API_VERSION, KIND, names
from simplerl_operator.observe.job import Job


def labels(job: Job) -> dict[str, str]:
    """Labels of everything that belongs to the attempt."""
    return {
        names.LABEL_JOB: job.name,
        names.LABEL_UID: job.uid,
        names.LABEL_ATTEMPT: str(job.attempt),
    }


def child(job: Job, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Metadata of a child. No blockOwnerDeletion: it would need the right to update the job's finalizers."""
    return {
        "name": name,
        "namespace": job.namespace,
        "labels": labels,
        "ownerReferences": [
            {"apiVersion": API_VERSION, "kind": KIND, "name": job.name, "uid": job.uid, "controller": True}
        ],
    }
