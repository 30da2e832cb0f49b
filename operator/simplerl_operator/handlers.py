"""kopf carries events into the work queue, and does nothing else: handlers of its own for creation or change would add
finalizers and annotations to users' objects and swallow errors."""

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import kopf

from simplerl_api import GROUP, PLURAL, names
from simplerl_operator import garbage
from simplerl_operator.kinds import JOB, POD, RAY_CLUSTER, Kind
from simplerl_operator.kubernetes_api import Unavailable
from simplerl_operator.observe import pods
from simplerl_operator.observe import ray_cluster as ray_clusters
from simplerl_operator.operation import SETTLE_SECONDS, NotReady, Operation
from simplerl_operator.settings import Settings

_RETRY_SECONDS = 5.0
"""Seconds between two tries to start, while a CRD is not installed or the API server does not answer."""
_PAGE = 100
"""Objects in an answer to a list."""
_HELD_SECONDS = 0.2
"""Seconds for which an event is held once it is handled."""


def registry(settings: Settings) -> kopf.OperatorRegistry:
    """All handlers."""
    handlers = kopf.OperatorRegistry()
    running: list[Operation] = []

    @kopf.on.login(registry=handlers)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.startup(registry=handlers, errors=kopf.ErrorsMode.PERMANENT)
    async def startup(**_: Any) -> None:
        try:
            running.append(await Operation.start(settings))
            garbage.collect_seldom()
        except (NotReady, Unavailable) as missing:
            raise kopf.TemporaryError(str(missing), delay=_RETRY_SECONDS) from missing

    @kopf.on.cleanup(registry=handlers)
    async def cleanup(**_: Any) -> None:
        while running:
            await running.pop().stop()

    def hear(kind: Kind, type: str, body: kopf.Body) -> None:
        metadata = body["metadata"]
        running[0].watches.hear(kind.plural, metadata["uid"], metadata["resourceVersion"], gone=type == "DELETED")

    @kopf.on.event(GROUP, PLURAL, registry=handlers)
    async def job(type: str, body: kopf.Body, namespace: str | None, name: str, **_: Any) -> None:
        hear(JOB, type, body)
        key = (namespace or "", name)
        if type == "MODIFIED":
            running[0].modified(key, body["metadata"]["resourceVersion"])
        else:
            # a list tells of all objects of a job at once
            running[0].queue.add(key, SETTLE_SECONDS if type is None else 0.0)

    @kopf.on.event(RAY_CLUSTER.group, RAY_CLUSTER.plural, labels={names.LABEL_JOB: kopf.PRESENT}, registry=handlers)
    async def ray_cluster(type: str, body: kopf.Body, namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        hear(RAY_CLUSTER, type, body)
        key = (namespace or "", labels[names.LABEL_JOB])
        running[0].ray_cluster_changed(key, ray_clusters.read(body), gone=type == "DELETED")

    @kopf.on.event("", "v1", "pods", labels={names.LABEL_JOB: kopf.PRESENT}, registry=handlers)
    async def pod(type: str, body: kopf.Body, namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        hear(POD, type, body)
        key = (namespace or "", labels[names.LABEL_JOB])
        running[0].pod_changed(key, pods.read(body), gone=type == "DELETED")

    return handlers


class _NoEssence(kopf.AnnotationsDiffBaseStorage):
    """kopf copies each object of each event to see whether its essence has changed, even where no handler asks for it:
    a third of the operator's processor time. Nothing is kept on objects, and none of them has an essence."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()


class _Unending:
    """Seconds between the tries of a request, without an end."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1.0, 1.0, 2.0, 3.0), itertools.repeat(5.0))


def kopf_settings() -> kopf.OperatorSettings:
    """kopf's settings."""
    settings = kopf.OperatorSettings()
    # a watch that the network dropped must not wait for ever: kopf#585, kopf#698, kopf#847
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 360
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.networking.enforce_retry_after = True
    # kopf gives a watch up after nine tries, and itself with it; an outage may last longer than that minute
    settings.networking.error_backoffs = _Unending()
    # watches that end at once (410) would be begun anew ten times a second
    settings.watching.reconnect_backoff = 1.0
    # without these selectors kopf would read every pod of the cluster
    settings.watching.label_selectors["", "v1", "pods"] = names.LABEL_JOB
    settings.watching.label_selectors[RAY_CLUSTER.group, RAY_CLUSTER.plural] = names.LABEL_JOB
    # kopf lists whole objects before it watches: in one answer those of a thousand jobs took 446 MB
    settings.watching.chunk_size = _PAGE
    # and holds the last event of each object for as long; not 0, with which it would never get hold of the next
    settings.queueing.idle_timeout = _HELD_SECONDS
    settings.persistence.diffbase_storage = _NoEssence()
    # Events are ours, posted on transitions only
    settings.posting.enabled = False
    # no rights on CRDs and namespaces are needed: what is served is fixed at the start
    settings.scanning.disabled = True
    return settings


def run(settings: Settings) -> None:
    """Runs the operator until it is told to stop."""
    asyncio.run(
        kopf.operator(
            registry=registry(settings),
            settings=kopf_settings(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
        )
    )
