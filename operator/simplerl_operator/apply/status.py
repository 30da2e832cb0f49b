"""Writes the status of a job."""

from simplerl_api import API_VERSION, KIND
from simplerl_api.status import Status
from simplerl_operator.kinds import JOB
from simplerl_operator.kubernetes_api import KubernetesApi
from simplerl_operator.observe.job import Job, Key

WRITES_PER_SECOND = 20.0
"""Bound on the writes of training figures, all jobs together."""


class Pace:
    """Lets so many pass a second, in the order in which they came. Nobody sleeps for it: a worker that did would keep
    other jobs from what is to be said of them at once."""

    def __init__(self, per_second: float = WRITES_PER_SECOND) -> None:
        self._gap = 1.0 / per_second
        self._next = 0.0
        self._turns: dict[Key, float] = {}

    def wait(self, key: Key, now: float) -> float:
        """Seconds until it is a job's turn, which is kept for it; 0 takes the turn. `now` by the monotonic clock."""
        at = self._turns.get(key)
        if at is None:
            at = self._turns[key] = max(now, self._next)
            self._next = at + self._gap
        if now >= at:
            del self._turns[key]
        return max(0.0, at - now)

    def forget(self, key: Key) -> None:
        """A job that is gone needs no turn."""
        self._turns.pop(key, None)


async def write(api: KubernetesApi, job: Job, status: Status) -> str:
    """Applies the whole status to the very object that was read: another uid or resourceVersion is refused, so that
    what was decided rests on what is there (and the first attempt on the spec that it fixes). The resourceVersion that
    it made."""
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
    written = await api.apply_status(JOB, job.namespace, job.name, manifest)
    return str(written["metadata"]["resourceVersion"])
