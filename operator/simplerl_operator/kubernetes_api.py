"""The Kubernetes API: JSON documents in and out over one pool of connections, refusals told from troubles."""

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import aiohttp
from kubernetes.aio import client, config

from simplerl_operator import listed
from simplerl_operator.kinds import LEASE, Kind
from simplerl_operator.listed import Listed
from simplerl_operator.server_clock import ServerClock

Document = dict[str, Any]

FIELD_MANAGER = "simplerl-operator"
_TIMEOUT_SECONDS = 30.0
_CONNECTIONS = 32
_TRANSIENT = frozenset({401, 408, 410, 425, 429})
"""410: the pages of a list have expired, since too long passed between two of them."""
_LONGEST_PAUSE = 30.0
"""Seconds; an API server that asks for more is asked again after so long."""
_GO_AHEAD = 1.0
"""Seconds by which one request goes ahead of the others after a pause."""
_METHODS = {
    "get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "update": "PUT", "delete": "DELETE"
}  # fmt: skip
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""The object in an answer without spec and status: what was sent is known, and to encode it takes time."""
_APPLY = "application/apply-patch+yaml"
_EDIT = "application/json-patch+json"
_PAGE = 250
"""Objects in an answer to a list of all that there are."""
_LIST_OF_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Refused(Exception):
    """The API server says no, and will say so again until something changes. `str()` is its message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def exists(self) -> bool:
        """Whether an object of this name is already there."""
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Whether the object has changed since it was read."""
        return self.status == 409 and not self.exists


class Unavailable(Exception):
    """The API server did not answer, or not now: try again, after `pause` seconds at the earliest."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class NotOurs(Unavailable):
    """Another operator has the Lease, or may have it by now: nothing may be written."""


class KubernetesApi:
    """One API server."""

    def __init__(self, configuration: client.Configuration) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.retries = None  # the work queue retries, with a back-off per job
        # aiohttp would ask the environment and ~/.netrc anew for each request, in two threads, which costs twice as
        # much as the request itself; the proxy is the same for all of them, and .netrc is not meant for API servers
        configuration.client_session_kwargs = {"trust_env": False}
        configuration.proxy = configuration.proxy or proxy_for(configuration.host)
        self.server: str = configuration.host
        self.clock = ServerClock(time.monotonic)
        self._client = client.ApiClient(configuration)
        self._resume = 0.0  # when requests may be sent again; 0 where no pause was asked for
        self._paused = 0.0  # when the newest pause was asked for
        self._may_write: Callable[[], bool] = lambda: True
        self._count: Callable[[str, str, str], None] = lambda verb, resource, code: None

    def guard(self, may_write: Callable[[], bool]) -> None:
        """From here on every write but those of Leases asks first."""
        self._may_write = may_write

    def count(self, count: Callable[[str, str, str], None]) -> None:
        """Has `count` called with verb, resource and code of every call."""
        self._count = count

    def assure_writer(self) -> None:
        """Raises NotOurs where nothing may be written."""
        if not self._may_write():
            raise NotOurs("the Lease is not ours: nothing is written")

    @classmethod
    async def connect(cls) -> Self:
        """By the pod's service account, or else by the kubeconfig that KUBECONFIG or the home folder names."""
        configuration = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except config.ConfigException:
            await config.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return cls(configuration)

    async def close(self) -> None:
        await self._client.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Document | None:
        """The object, or None where there is none; `namespace` is None for what has none."""
        try:
            return await self._request("get", kind, kind.path(namespace, name))
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    async def list(
        self, kind: Kind, namespace: str | None, *, labels: str | None = None, fields: str | None = None
    ) -> Sequence[Document]:
        """The objects that match both selectors."""
        query = [(k, v) for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v is not None]
        items: list[Document] = (await self._request("list", kind, kind.path(namespace), query))["items"]
        return items

    async def listed(self, kind: Kind, namespace: str | None, labels: str | None = None) -> Sequence[Listed]:
        """What there is of a kind. Metadata alone, and some hundred at a time: whole objects of a thousand jobs would
        need more memory for a moment than all else."""
        query = [("limit", str(_PAGE))] + ([] if labels is None else [("labelSelector", labels)])
        found: list[Listed] = []
        proceed: str | None = ""
        while proceed is not None:
            more = [("continue", proceed)] if proceed else []
            page = await self._request("list", kind, kind.path(namespace), query + more, accept=_LIST_OF_METADATA)
            # a list of metadata that is empty has null for its items
            found += (listed.read(item) for item in page["items"] or ())
            proceed = page["metadata"].get("continue") or None
        return found

    async def create(self, kind: Kind, namespace: str, manifest: Document, *, rehearse: bool = False) -> Document:
        """Creates an object, whose metadata it returns; fields that the API does not know are refused. `rehearse` stops
        before storing it."""
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        if rehearse:
            query.append(("dryRun", "All"))
        elif kind is not LEASE:
            self.assure_writer()
        return await self._request("create", kind, kind.path(namespace), query, manifest, accept=_METADATA)

    async def replace(self, kind: Kind, namespace: str, name: str, manifest: Document) -> Document:
        """Puts an object in the place of the one that was read; refused where it has changed since."""
        if kind is not LEASE:
            self.assure_writer()
        query = [("fieldManager", FIELD_MANAGER)]
        return await self._request("update", kind, kind.path(namespace, name), query, manifest)

    async def apply(self, kind: Kind, namespace: str, name: str, manifest: Document) -> Document:
        """Server-side apply of an object that is ours alone. Its metadata."""
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        self.assure_writer()
        path = kind.path(namespace, name)
        return await self._request("patch", kind, path, query, manifest, _APPLY, accept=_METADATA)

    async def apply_status(self, kind: Kind, namespace: str, name: str, manifest: Document) -> Document:
        """Server-side apply of a status: what an earlier apply held and this one leaves out is removed. The object's
        metadata."""
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        self.assure_writer()
        path = kind.path(namespace, name, "status")
        return await self._request("patch", kind, path, query, manifest, _APPLY, accept=_METADATA)

    async def merge(self, kind: Kind, namespace: str, name: str, patch: Document, manager: str) -> Document:
        """A JSON merge patch; fields that the API does not know are refused."""
        query = [("fieldManager", manager), ("fieldValidation", "Strict")]
        self.assure_writer()
        path = kind.path(namespace, name)
        return await self._request("patch", kind, path, query, patch, "application/merge-patch+json")

    async def edit(self, kind: Kind, namespace: str, name: str, operations: Sequence[Document]) -> Document:
        """A JSON patch (RFC 6902), done as a whole or refused with 422 where one of its tests fails. The object's
        metadata."""
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        self.assure_writer()
        path = kind.path(namespace, name)
        return await self._request("patch", kind, path, query, operations, _EDIT, accept=_METADATA)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Deletes the object if it is still the one with this uid; its dependents follow in the background."""
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        self.assure_writer()
        try:
            await self._request("delete", kind, kind.path(namespace, name), body=options)
        except Refused as refusal:
            if refusal.status != 404 and not refusal.conflict:
                raise

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server knows the kind."""
        try:
            found = await self._request("get", None, f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1")
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise
        return any(resource["name"] == kind.plural for resource in found["resources"])

    def _await_pause(self) -> float:
        """When a request is sent. Raises Unavailable during a pause that the API server asked for; after it one request
        goes ahead to see, and the others follow when it has been answered, or a second later."""
        now = time.monotonic()
        if now < self._resume:
            left = self._resume - now
            raise Unavailable(f"the API server has asked for a pause of {left:.1f} s more", left)
        if self._resume:
            self._resume = now + _GO_AHEAD
        return now

    async def _request(
        self,
        verb: str,
        kind: Kind | None,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, Any] | Sequence[Document] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Document:
        method, resource = _METHODS[verb], kind.plural if kind is not None else "discovery"
        sent = self._await_pause()
        headers = {"Accept": accept, "Content-Type": content_type}
        try:
            request = await self._client.param_serialize(
                method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            response = await self._client.call_api(*request, _request_timeout=_TIMEOUT_SECONDS)
            self.clock.hear(response.headers.get("Date", ""))
            text: bytes = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._count(verb, resource, "none")
            said = str(error) or type(error).__name__
            raise Unavailable(f"the API server {self.server} did not answer {method} {path}: {said}") from error
        self._count(verb, resource, str(response.status))
        if sent > self._paused:
            self._resume = 0.0
        if 200 <= response.status < 300:
            document: Document = json.loads(text)
            return document
        reason, message = _explained(text)
        # a webhook that does not answer keeps one object out, while the API server is well
        unheard = response.status == 500 and "failed calling webhook" in message
        if not unheard and (response.status >= 500 or response.status in _TRANSIENT):
            pause = _pause(response.headers.get("Retry-After"))
            if pause:
                self._paused = time.monotonic()
                self._resume = self._paused + pause
            raise Unavailable(f"the API server answered {response.status} to {method} {path}: {message}", pause)
        raise Refused(response.status, reason, message)


def _pause(retry_after: str | None) -> float:
    """Seconds that an answer asks to wait; Kubernetes gives whole seconds only."""
    return min(float(retry_after), _LONGEST_PAUSE) if retry_after is not None and retry_after.isdigit() else 0.0


def proxy_for(url: str) -> str | None:
    """The proxy that the environment (HTTPS_PROXY, NO_PROXY, …) names for a URL."""
    parts = urllib.parse.urlsplit(url)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _explained(text: bytes) -> tuple[str, str]:
    """Reason and message of a metav1.Status, or of whatever a proxy sent in its place."""
    try:
        status = json.loads(text)
    except ValueError:
        return "", text.decode(errors="replace")[:500]
    if not isinstance(status, dict):
        return "", str(status)[:500]
    return str(status.get("reason", "")), str(status.get("message", ""))
