"""Makes and removes the children of a job."""

import asyncio

from simplerl_operator.build import network_policy, ray_cluster, run, secret
from simplerl_operator.build.network_policy import Reach
from simplerl_operator.decide.decision import EnginePods
from simplerl_operator.kinds import CONFIG_MAP, NETWORK_POLICY, RAY_CLUSTER, SECRET, Kind
from simplerl_operator.kubernetes_api import Document, KubernetesApi, Refused
from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job


async def create(api: KubernetesApi, job: Job, token: str, reach: Reach | None) -> None:
    """The token's Secret, the NetworkPolicy and the run's ConfigMap, and once all are there the RayCluster, whose pods
    need them. `reach`: None makes no policy.

    What is there already from an earlier try is kept. Raises Refused.
    """
    outcomes = await asyncio.gather(
        _secret(api, job, token),
        _policy(api, job, reach),
        _create_own(api, CONFIG_MAP, job, run.config_map(job)),
        return_exceptions=True,
    )
    # all have ended before a refusal is said: none of them may go on beside the next turn
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
    await _create_own(api, RAY_CLUSTER, job, ray_cluster.ray_cluster(job))


async def scale(api: KubernetesApi, job: Job, wanted: EnginePods) -> None:
    """Asks KubeRay for other pods of engines, if their group is still as it was seen. Raises Refused."""
    at = f"/spec/workerGroupSpecs/{wanted.group.index}"
    operations: list[Document] = [
        {"op": "test", "path": f"{at}/groupName", "value": pods.ENGINES},
        {"op": "test", "path": f"{at}/replicas", "value": wanted.group.replicas},
        {"op": "add", "path": f"{at}/scaleStrategy", "value": {"workersToDelete": list(wanted.leaving)}},
        {"op": "replace", "path": f"{at}/replicas", "value": wanted.replicas},
    ]
    await api.edit(RAY_CLUSTER, job.namespace, job.cluster_name, operations)


async def release(api: KubernetesApi, job: Job, uid: str) -> None:
    """Deletes the RayCluster of the attempt; its pods follow."""
    await api.delete(RAY_CLUSTER, job.namespace, job.cluster_name, uid)


async def _secret(api: KubernetesApi, job: Job, token: str) -> None:
    try:
        await api.create(SECRET, job.namespace, secret.secret(job, token))
    except Refused as refusal:
        # it cannot be read back with the rights that the operator has; another token in it shows at the head's lock
        if not refusal.exists:
            raise


async def _policy(api: KubernetesApi, job: Job, reach: Reach | None) -> None:
    if reach is not None:
        policy = network_policy.network_policy(job, reach)
        await api.apply(NETWORK_POLICY, job.namespace, policy["metadata"]["name"], policy)


async def _create_own(api: KubernetesApi, kind: Kind, job: Job, manifest: Document) -> None:
    name = manifest["metadata"]["name"]
    try:
        await api.create(kind, job.namespace, manifest)
    except Refused as refusal:
        if not refusal.exists:
            raise
        there = await api.get(kind, job.namespace, name)
        owners = (there or {}).get("metadata", {}).get("ownerReferences", [])
        if there is not None and job.uid not in [owner["uid"] for owner in owners]:
            message = f"a {kind.kind} {name} that is not this job's is in its place: delete or rename it"
            raise Refused(409, "NameTaken", message) from refusal
