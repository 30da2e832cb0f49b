"""Writes the status of a job."""

import asyncio
import time

from simplerl_api import API_VERSION, KIND
from simplerl_api.status import Status
from simplerl_operator.kinds import JOB
from simplerl_operator.kubernetes_api import KubernetesApi
from simplerl_operator.observe.job import Job

WRITES_PER_SECOND = 20.0
"""Bound on the writes of training figures, all jobs together."""


class Pace:
    """Lets so many pass a second, in the order in which they came."""

    def __init__(self, per_second: float = WRITES_PER_SECOND) -> None:
        self._gap = 1.0 / per_second
        self._next = 0.0

    async def turn(self) -> None:
        now = time.monotonic()
        at = max(now, self._next)
        self._next = at + self._gap
        await asyncio.sleep(at - now)


async def write(api: KubernetesApi, job: Job, status: Status) -> None:
    """Applies the whole status to the very object that was read: another uid or resourceVersion is refused, so that
    what was decided rests on what is there (and the first attempt on the spec that it fixes)."""
    manifest = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
            "resourceVersion": job.resource_version,
        },
        "status": status.document(),
    }
    await api.apply_status(JOB, job.namespace, job.name, manifest)
