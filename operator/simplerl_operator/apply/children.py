"""Makes and removes the children of a job."""

from simplerl_operator.build import network_policy, ray_cluster, run, secret
from simplerl_operator.build.network_policy import Reach
from simplerl_operator.kinds import CONFIG_MAP, NETWORK_POLICY, RAY_CLUSTER, SECRET, Kind
from simplerl_operator.kubernetes_api import Document, KubernetesApi, Refused
from simplerl_operator.observe.job import Job


async def create(api: KubernetesApi, job: Job, token: str, reach: Reach | None) -> None:
    """The token's Secret, the NetworkPolicy, the run's ConfigMap and the RayCluster, in the order in which pods need
    them. `reach`: None makes no policy.

    What is there already from an earlier try is kept. Raises Refused.
    """
    try:
        await api.create(SECRET, job.namespace, secret.secret(job, token))
    except Refused as refusal:
        # it cannot be read back with the rights that the operator has; another token in it shows at the head's lock
        if not refusal.exists:
            raise
    if reach is not None:
        policy = network_policy.network_policy(job, reach)
        await api.apply(NETWORK_POLICY, job.namespace, policy["metadata"]["name"], policy)
    await _create_own(api, CONFIG_MAP, job, run.config_map(job))
    await _create_own(api, RAY_CLUSTER, job, ray_cluster.ray_cluster(job))


async def release(api: KubernetesApi, job: Job, uid: str) -> None:
    """Deletes the RayCluster of the attempt; its pods follow."""
    await api.delete(RAY_CLUSTER, job.namespace, job.cluster_name, uid)


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
