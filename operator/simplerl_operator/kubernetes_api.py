"""The Kubernetes API: JSON documents in and out over one pool of connections, refusals told from troubles."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import aiohttp
from kubernetes.aio import client, config

from simplerl_operator.kinds import Kind

Document = dict[str, Any]

FIELD_MANAGER = "simplerl-operator"
_TIMEOUT_SECONDS = 30.0
_CONNECTIONS = 32
_TRANSIENT = frozenset({401, 408, 425, 429})


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
    """The API server did not answer, or not now: try again."""


class KubernetesApi:
    """One API server."""

    def __init__(self, configuration: client.Configuration) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.retries = None  # the work queue retries, with a back-off per job
        self.server: str = configuration.host
        self._client = client.ApiClient(configuration)

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

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """The object, or None where there is none."""
        try:
            return await self._request("GET", kind.path(namespace, name))
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    async def list(
        self, kind: Kind, namespace: str | None, *, labels: str | None = None, fields: str | None = None
    ) -> Sequence[Document]:
        """The objects that match both selectors."""
        query = [(k, v) for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v is not None]
        items: list[Document] = (await self._request("GET", kind.path(namespace), query))["items"]
        return items

    async def create(self, kind: Kind, namespace: str, manifest: Document, *, rehearse: bool = False) -> Document:
        """Creates an object; fields that the API does not know are refused. `rehearse` stops before storing it."""
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict")]
        if rehearse:
            query.append(("dryRun", "All"))
        return await self._request("POST", kind.path(namespace), query, manifest)

    async def apply(self, kind: Kind, namespace: str, name: str, manifest: Document) -> Document:
        """Server-side apply of an object that is ours alone."""
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        return await self._request("PATCH", kind.path(namespace, name), query, manifest, "application/apply-patch+yaml")

    async def apply_status(self, kind: Kind, namespace: str, name: str, manifest: Document) -> Document:
        """Server-side apply of a status: what an earlier apply held and this one leaves out is removed."""
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        path = kind.path(namespace, name, "status")
        return await self._request("PATCH", path, query, manifest, "application/apply-patch+yaml")

    async def merge(self, kind: Kind, namespace: str, name: str, patch: Document, manager: str) -> Document:
        """A JSON merge patch; fields that the API does not know are refused."""
        query = [("fieldManager", manager), ("fieldValidation", "Strict")]
        return await self._request("PATCH", kind.path(namespace, name), query, patch, "application/merge-patch+json")

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Deletes the object if it is still the one with this uid; its dependents follow in the background."""
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._request("DELETE", kind.path(namespace, name), body=options)
        except Refused as refusal:
            if refusal.status != 404 and not refusal.conflict:
                raise

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server knows the kind."""
        try:
            found = await self._request("GET", f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1")
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise
        return any(resource["name"] == kind.plural for resource in found["resources"])

    async def _request(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Document:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            request = await self._client.param_serialize(
                method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            response = await self._client.call_api(*request, _request_timeout=_TIMEOUT_SECONDS)
            text: bytes = await response.read()  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            said = str(error) or type(error).__name__
            raise Unavailable(f"the API server {self.server} did not answer {method} {path}: {said}") from error
        if 200 <= response.status < 300:
            document: Document = json.loads(text)
            return document
        reason, message = _explained(text)
        if response.status >= 500 or response.status in _TRANSIENT:
            raise Unavailable(f"the API server answered {response.status} to {method} {path}: {message}")
        raise Refused(response.status, reason, message)


def _explained(text: bytes) -> tuple[str, str]:
    """Reason and message of a metav1.Status, or of whatever a proxy sent in its place."""
    try:
        status = json.loads(text)
    except ValueError:
        return "", text.decode(errors="replace")[:500]
    if not isinstance(status, dict):
        return "", str(status)[:500]
    return str(status.get("reason", "")), str(status.get("message", ""))
