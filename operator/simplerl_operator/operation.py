"""The running operator: its parts, wired once, started and stopped together."""

import asyncio
import logging
import time
from typing import Self

import aiohttp
from aiohttp import web

from simplerl_operator import server
from simplerl_operator.apply import operator_key
from simplerl_operator.kinds import JOB, RAY_CLUSTER
from simplerl_operator.kubernetes_api import KubernetesApi, Refused, Unavailable
from simplerl_operator.metrics import Metrics
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.job import Key
from simplerl_operator.progress_client import ProgressClient
from simplerl_operator.ray_jobs import HeadSilent, RayJobs
from simplerl_operator.reconciler import Reconciler
from simplerl_operator.settings import Settings
from simplerl_operator.work_queue import WorkQueue

_log = logging.getLogger(__name__)


class NotReady(Exception):
    """Something that the operator cannot do without is not there; the message says what."""


class Operation:
    """Everything that lives as long as the operator."""

    def __init__(self, settings: Settings, api: KubernetesApi, session: aiohttp.ClientSession, key: bytes) -> None:
        self.evidence = Evidence()
        self._settings = settings
        self._api = api
        self._session = session
        self._metrics = Metrics()
        self._progress = ProgressClient(session, self._wake, time.time)
        reconcile = Reconciler(api, RayJobs(session), self._progress, self.evidence, self._metrics, settings, key)
        self.queue: WorkQueue[Key] = WorkQueue(
            reconcile,
            workers=settings.workers,
            expected=(Unavailable, HeadSilent, Refused),
            failed=self._metrics.reconcile_errors.inc,
        )
        self._metrics.watch_queue(lambda: self.queue.depth)
        self._resync: asyncio.Task[None] | None = None
        self._resynced = time.monotonic()
        self._server: web.AppRunner | None = None

    @classmethod
    async def start(cls, settings: Settings) -> Self:
        """Connects and starts working. Raises NotReady."""
        api = await KubernetesApi.connect()
        try:
            for kind, who in ((JOB, "the chart's CRD"), (RAY_CLUSTER, "KubeRay 1.6 or newer")):
                if not await api.serves(kind):
                    raise NotReady(f"the API server does not know {kind.plural}.{kind.group}: install {who}")
            key = await operator_key.ensure(api, settings.operator_namespace)
        except BaseException:
            await api.close()
            raise
        # long polls hold their connections: the number of running jobs is the bound
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        operation = cls(settings, api, session, key)
        operation._server = await server.start(settings.http_port, operation._metrics, operation._ill)
        operation.queue.start()
        operation._resync = asyncio.create_task(operation._resync_forever(), name="resync")
        _log.info("started", extra={"server": api.server, "namespaces": ",".join(settings.namespaces) or "all"})
        return operation

    async def stop(self) -> None:
        if self._resync is not None:
            self._resync.cancel()
            await asyncio.gather(self._resync, return_exceptions=True)
        await self.queue.stop()
        await self._progress.close()
        if self._server is not None:
            await self._server.cleanup()
        await self._session.close()
        await self._api.close()

    def _wake(self, key: Key) -> None:
        self.queue.add(key)

    async def _resync_forever(self) -> None:
        """Looks at every job now and then: a watch that went deaf (kopf#1276) delays a job, and does not lose it."""
        while True:
            await asyncio.sleep(self._settings.resync_seconds)
            self._resynced = time.monotonic()
            try:
                for namespace in self._settings.namespaces or (None,):
                    for document in await self._api.list(JOB, namespace):
                        self.queue.add((document["metadata"]["namespace"], document["metadata"]["name"]))
            except (Unavailable, Refused) as error:
                _log.warning("jobs could not be listed", extra={"why": str(error)})

    def _ill(self) -> str | None:
        if not self.queue.alive:
            return "a worker has ended"
        silent = time.monotonic() - self._resynced
        if silent > 3 * self._settings.resync_seconds:
            return f"jobs were last listed {silent:.0f} s ago"
        return None
