"""Whether the API server takes a job's RayCluster, asked before anything of the job is fixed."""

import json
from collections.abc import Callable
from dataclasses import replace

from simplerl_operator.build import ray_cluster
from simplerl_operator.kinds import RAY_CLUSTER
from simplerl_operator.kubernetes_api import KubernetesApi, Refused
from simplerl_operator.observe.job import Job

_HOLDS_SECONDS = 30.0


class Rehearsals:
    """Of jobs that differ in nothing but their names, one rehearsal in half a minute is enough: it costs the API server
    almost as much as the creation, which is answered for itself."""

    def __init__(self, api: KubernetesApi, clock: Callable[[], float]) -> None:
        """`clock`: seconds by any clock."""
        self._api = api
        self._clock = clock
        self._taken: dict[str, float] = {}

    async def rejection(self, job: Job) -> str | None:
        """Why the RayCluster is refused, in the API server's words; None where it is not."""
        now, key = self._clock(), _shape(job)
        self._taken = {shape: at for shape, at in self._taken.items() if 0 <= now - at < _HOLDS_SECONDS}
        if key in self._taken:
            return None
        try:
            await self._api.create(RAY_CLUSTER, job.namespace, ray_cluster.ray_cluster(job), rehearse=True)
        except Refused as refusal:
            if not refusal.exists:
                return str(refusal)
        self._taken[key] = now
        return None


def _shape(job: Job) -> str:
    """The RayCluster without what tells one job from another."""
    return json.dumps(ray_cluster.ray_cluster(replace(job, name="job", uid="0")), sort_keys=True)
