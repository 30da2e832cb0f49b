"""A job's head while it lives: its pod, the job's token, and what the driver and Ray's dashboard answer."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from kubectl_simplerl import port_forward
from kubectl_simplerl.cluster import Cluster, http
from kubectl_simplerl.outcome import Fault
from simplerl_api import names
from simplerl_api.progress import PORT
from simplerl_operator.build.pod import DASHBOARD_PORT
from simplerl_operator.build.secret import TOKEN_KEY
from simplerl_operator.kinds import POD, SECRET
from simplerl_operator.kubernetes_api import Document, Refused, Unavailable

STAND_IN = "SIMPLERL_HEAD_ADDRESS"
"""As for the operator: a base URL that stands for every head, for tests and for those who reach the pods directly."""


@dataclass(frozen=True)
class Head:
    """A head that can be asked."""

    session: aiohttp.ClientSession
    dashboard: str
    """Base URL of Ray's dashboard."""
    driver: str
    """Base URL of the driver's page and /progress."""
    token: str = field(repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def document(self, url: str, query: Mapping[str, str] | None = None) -> Any:
        """The JSON at a URL. Raises Fault."""
        try:
            async with self.session.get(url, params=query, headers=self.headers, allow_redirects=False) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Fault(f"{url} does not answer: {str(error) or 'timed out'}") from error
        if response.status != 200:
            raise Fault(f"{url} answers {response.status}: {' '.join(text.split())[:300]}")
        try:
            return json.loads(text)
        except ValueError:
            raise Fault(f"{url} answers with something that is not JSON: {text[:100]!r}") from None


async def pod_of(cluster: Cluster, job: Document) -> Document:
    """The running head pod of the newest attempt. Raises Fault where none runs."""
    metadata, status = job["metadata"], job.get("status", {})
    selector = f"{names.LABEL_UID}={metadata['uid']},{names.LABEL_ROLE}=head"
    found = [
        pod
        for pod in await cluster.api.list(POD, cluster.namespace, labels=selector)
        if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    if not found:
        raise Fault(f"no head pod of job {metadata['name']} runs: it is {status.get('phase') or 'not looked at yet'}")
    return max(found, key=lambda pod: pod["metadata"]["creationTimestamp"])


async def token_of(cluster: Cluster, job: Document) -> str:
    """The job's token, read with the user's rights. Raises Fault."""
    name = names.secret(job["metadata"]["name"], job["metadata"]["uid"])
    try:
        found = await cluster.api.get(SECRET, cluster.namespace, name)
    except Refused as refusal:
        raise Fault(f"the job's token cannot be read: {refusal}") from refusal
    held = ((found or {}).get("data") or {}).get(TOKEN_KEY)
    if held is None:
        raise Fault(f"there is no Secret {name} with the key {TOKEN_KEY} in namespace {cluster.namespace}")
    return base64.b64decode(held).decode()


@asynccontextmanager
async def reached(cluster: Cluster, job: Document) -> AsyncIterator[Head]:
    """The job's head while the context is open, by a forwarded port. Raises Fault."""
    pod = await pod_of(cluster, job)
    token = await token_of(cluster, job)
    async with opened(cluster, job, pod) as door:
        yield replace(door, token=token)


@asynccontextmanager
async def opened(cluster: Cluster, job: Document, pod: Document) -> AsyncIterator[Head]:
    """A head pod's ports while the context is open, without the token. Raises Fault."""
    async with http() as session:
        stand_in = os.environ.get(STAND_IN)
        if stand_in:
            attempt = int(pod["metadata"]["labels"].get(names.LABEL_ATTEMPT, "1"))
            of = names.cluster(job["metadata"]["name"], job["metadata"]["uid"], attempt)
            base = stand_in.replace("{namespace}", cluster.namespace).replace("{cluster}", of).rstrip("/")
            yield Head(session, base, base, "")
            return
        name = pod["metadata"]["name"]
        async with port_forward.opened(cluster, f"pod/{name}", (DASHBOARD_PORT, PORT)) as ports:
            dashboard, driver = (f"http://127.0.0.1:{ports[port]}" for port in (DASHBOARD_PORT, PORT))
            yield Head(session, dashboard, driver, "")


@dataclass(frozen=True)
class Live:
    """What a driver says of its run; or why it says nothing."""

    history: Mapping[str, Any] = field(default_factory=dict)
    activity: str = ""
    silence: str = ""


async def live(head: Head) -> Live:
    """The driver's curves and what it is doing. Raises Fault."""
    history, progress = await asyncio.gather(
        head.document(f"{head.driver}/history"),
        head.document(f"{head.driver}/progress", {"since": "0", "wait": "0"}),
    )
    return Live(history, str(progress.get("activity", "")))


async def live_or_why_not(cluster: Cluster, job: Document) -> Live:
    """As `live`, for those who have something to show without it: a silent driver is told of, and ends nothing."""
    try:
        async with reached(cluster, job) as head:
            return await live(head)
    except (Fault, Refused, Unavailable) as fault:
        return Live(silence=str(fault))
