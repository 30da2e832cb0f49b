"""Pods that went while nobody looked: whether there are any, and whether the cluster took them."""

from dataclasses import replace

from simplerl_operator.kinds import EVENT, NODE
from simplerl_operator.kubernetes_api import KubernetesApi
from simplerl_operator.observe import disruptions, pods
from simplerl_operator.observe.observation import Observation


def lost_unseen(seen: Observation) -> bool:
    """Whether the attempt has lost pods of which no event has told. Those that come and go are no loss; of other pods
    without ranks the driver tells, while it lives."""
    if seen.job.submitted and seen.head_pod is not None and seen.job.engines_apart and not _driver_over(seen):
        return False
    cluster, told = seen.job.status.cluster, len(seen.lost_core)
    if seen.cluster is None or cluster is None or cluster.pod_set is None:
        return False
    if seen.head_pod is None and not any(pod.role == pods.HEAD for pod in seen.lost):
        return True
    return len(seen.core) + told < seen.wanted_core or (not told and seen.pod_set != cluster.pod_set)


def _driver_over(seen: Observation) -> bool:
    ray_job = seen.head.ray_job if seen.head is not None else None
    said = seen.last_document
    return (said is not None and said.finished) or (ray_job is not None and ray_job.state.over)


async def look(api: KubernetesApi, seen: Observation, *, reads_nodes: bool) -> Observation:
    """Where an Event or a node shows that the cluster took a pod, it is among those that were lost."""
    job, cluster = seen.job, seen.cluster
    if cluster is None or any(pod.disruption for pod in (*seen.core, *seen.lost_core)):
        return seen
    admission = job.status.cluster.admission if job.status.cluster is not None else None
    events = await api.list(EVENT, job.namespace, fields=disruptions.EVENTS)
    known = {pod.name for pod in (*seen.pods, *seen.lost)}
    found = disruptions.traces(events, cluster.name, [cluster.created, *filter(None, [admission])], known)
    taken = [disruptions.taken_pod(job, trace, trace.taken) for trace in found if trace.taken]
    for trace in found if reads_nodes and not taken else ():
        if trace.node and (why := disruptions.of_node(trace.node, await api.get(NODE, None, trace.node))):
            taken = [disruptions.taken_pod(job, trace, why)]
            break
    return replace(seen, lost=(*seen.lost, *taken))
