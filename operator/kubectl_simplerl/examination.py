"""The doctor's eyes: objects, read with the user's rights, and what the head answers. Every wait has its end."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiohttp

from kubectl_simplerl import head
from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.head import Head
from kubectl_simplerl.head_links import HeadSight
from kubectl_simplerl.object_links import Objects
from kubectl_simplerl.outcome import Fault
from simplerl_api import names
from simplerl_operator.kinds import LEASE, POD, RAY_CLUSTER, Kind
from simplerl_operator.kubernetes_api import Document, Refused, Unavailable

_DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment")
_OPERATOR = "simplerl-operator"
"""Label of the chart's Deployment, and the Lease's name where the release has the chart's name."""
_ASK_SECONDS = 15.0
_NODES = "10000"
"""As many as Ray's dashboard lists at most."""


async def objects(cluster: Cluster, name: str, now: float) -> Objects:
    """What the API server knows. Raises Fault where there is no such job."""
    job = await cluster.job(name)
    refusals: dict[str, str] = {}
    return Objects(
        job=job,
        now=now,
        leases=await _leases(cluster, refusals),
        ray_cluster=await _ray_cluster(cluster, job, refusals),
        pods=await _pods(cluster, job, refusals),
        refusals=refusals,
    )


async def _leases(cluster: Cluster, refusals: dict[str, str]) -> Sequence[Document] | None:
    try:
        found = await cluster.api.list(_DEPLOYMENT, None, labels=f"app.kubernetes.io/name={_OPERATOR}")
        releases = {deployment["metadata"]["name"] for deployment in found} or {_OPERATOR}
        lists = [await cluster.api.list(LEASE, None, fields=f"metadata.name={name}") for name in sorted(releases)]
    except Refused as refusal:
        refusals["leases"] = f"whether it is still at work cannot be seen: {refusal}"
        return None
    return [lease for leases in lists for lease in leases]


async def _ray_cluster(cluster: Cluster, job: Document, refusals: dict[str, str]) -> Document | None:
    name = (job.get("status", {}).get("cluster") or {}).get("name")
    if name is None:
        return None
    try:
        return await cluster.api.get(RAY_CLUSTER, cluster.namespace, name)
    except Refused as refusal:
        refusals["RayCluster"] = str(refusal)
        return None


async def _pods(cluster: Cluster, job: Document, refusals: dict[str, str]) -> Sequence[Document] | None:
    try:
        selector = f"{names.LABEL_UID}={job['metadata']['uid']}"
        return await cluster.api.list(POD, cluster.namespace, labels=selector)
    except Refused as refusal:
        refusals["pods"] = str(refusal)
        return None


async def ask(cluster: Cluster, job: Document) -> tuple[HeadSight, Mapping[str, Any]]:
    """What the head answers, and the driver's history."""
    try:
        pod = await head.pod_of(cluster, job)
        async with head.opened(cluster, job, pod) as door:
            return await _through(cluster, job, door)
    except (Fault, Refused, Unavailable) as fault:
        return HeadSight(ports=str(fault)), {}


async def _through(cluster: Cluster, job: Document, door: Head) -> tuple[HeadSight, Mapping[str, Any]]:
    seen = HeadSight(without=await _code(door))
    try:
        known = replace(door, token=await head.token_of(cluster, job))
    except Fault as fault:
        return replace(seen, token=str(fault)), {}
    seen = replace(seen, given=await _code(known))
    if seen.without == 200 or seen.given != 200:
        return seen, {}
    submission = (job.get("status", {}).get("cluster") or {}).get("submissionId")
    asked: tuple[tuple[str, dict[str, str]], ...] = (
        (f"{door.dashboard}/api/v0/nodes", {"limit": _NODES}),
        (f"{door.dashboard}/api/jobs/{submission}", {}),
        (f"{door.driver}/progress", {"since": "0", "wait": "0"}),
        (f"{door.driver}/history", {}),
    )
    nodes, ray_job, progress, history = await asyncio.gather(*(_document(known, *what) for what in asked))
    listed, no_nodes = _listed(nodes)
    sight = replace(
        seen,
        nodes=listed,
        nodes_fault=no_nodes,
        ray_job=ray_job if isinstance(ray_job, dict) else None,
        ray_job_fault=ray_job if isinstance(ray_job, str) else "",
        progress=progress if isinstance(progress, dict) else None,
        progress_fault=progress if isinstance(progress, str) else "/progress answers with something that is no object",
    )
    return sight, history if isinstance(history, dict) else {}


async def _document(known: Head, url: str, query: Mapping[str, str]) -> Any:
    """The JSON at a URL, or the sentence that says why there is none."""
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            return await known.document(url, query)
    except TimeoutError:
        return f"{url} did not answer within {_ASK_SECONDS:.0f} s"
    except Fault as fault:
        return str(fault)


def _listed(document: Any) -> tuple[Sequence[Mapping[str, Any]] | None, str]:
    if isinstance(document, str):
        return None, document
    try:
        return [dict(node) for node in document["data"]["result"]["result"]], ""
    except (KeyError, TypeError, ValueError):
        return None, "Ray's dashboard answers with something that is no list of nodes"


async def _code(door: Head) -> int:
    """The status of the dashboard's answer. Raises Fault."""
    url = f"{door.dashboard}/api/version"
    headers = door.headers if door.token else {}
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            async with door.session.get(url, headers=headers, allow_redirects=False) as response:
                return response.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Fault(f"{url} does not answer: {str(error) or 'timed out'}") from error
