"""The running operator: its parts, wired once, started and stopped together."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import Sequence
from typing import Self

import aiohttp
from aiohttp import web

from simplerl_api import names
from simplerl_operator import server
from simplerl_operator.apply import operator_key
from simplerl_operator.kinds import JOB, POD, RAY_CLUSTER, Kind
from simplerl_operator.kubernetes_api import KubernetesApi, Refused, Unavailable
from simplerl_operator.lease import Lease
from simplerl_operator.listed import Listed
from simplerl_operator.metrics import Metrics
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.job import Key
from simplerl_operator.observe.pods import Pod
from simplerl_operator.observe.ray_cluster import RayCluster
from simplerl_operator.progress_client import ProgressClient
from simplerl_operator.ray_jobs import HeadSilent, RayJobs
from simplerl_operator.reconciler import Reconciler
from simplerl_operator.settings import Settings
from simplerl_operator.steady_clock import SteadyClock
from simplerl_operator.tokens import Tokens
from simplerl_operator.watches import PATIENCE, Watches
from simplerl_operator.work_queue import WorkQueue

SETTLE_SECONDS = 0.1
"""Seconds for which further events of a job are waited for: they come in bursts, and one look serves them all."""
RISING_SECONDS = 2.0
"""Seconds for which more is waited for where a pod is on its way: nothing follows from it yet."""
_WAITS_TOO_LONG = 300.0
"""Seconds in the queue after which the operator is not well; a turn is given up after 180."""
_LIST_AGAIN = 5.0
"""Seconds after a list of jobs that failed."""

_log = logging.getLogger(__name__)


class NotReady(Exception):
    """Something that the operator cannot do without is not there; the message says what."""


class Operation:
    """Everything that lives as long as the operator."""

    def __init__(self, settings: Settings, api: KubernetesApi, session: aiohttp.ClientSession) -> None:
        self.evidence = Evidence()
        self.watches = Watches(min(PATIENCE, settings.resync_seconds))
        self._settings = settings
        self._api = api
        self._session = session
        self._metrics = Metrics()
        clock = SteadyClock(time.time, time.monotonic)
        self._tokens = Tokens()
        self._progress = ProgressClient(session, self._wake, clock)
        self._reconcile = Reconciler(
            api, RayJobs(session), self._progress, self.evidence, self._metrics, settings, self._tokens, clock
        )
        identity = settings.identity or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._lease = Lease(api, settings.operator_namespace, settings.lease, identity)
        self.queue: WorkQueue[Key] = WorkQueue(
            self._turn,
            workers=settings.workers,
            expected=(Unavailable, HeadSilent, Refused),
            failed=self._metrics.reconcile_errors.inc,
            pause=lambda error: error.pause if isinstance(error, Unavailable) else 0.0,
        )
        self._ailing: set[Key] = set()
        self._list_now = asyncio.Event()
        self._resync: asyncio.Task[None] | None = None
        self._resynced = time.monotonic()
        self._missing_right: str | None = None
        self._server: web.AppRunner | None = None
        api.guard(lambda: self._lease.held)
        api.count(self._metrics.called)
        gauge = self._metrics.gauge
        gauge("simplerl_queue_depth", "Jobs that wait for a worker.", lambda: self.queue.depth)
        gauge("simplerl_queue_oldest_seconds", "Seconds for which the first of them waits.", lambda: self.queue.oldest)
        gauge("simplerl_lease_held", "1 while this operator is the one that writes.", lambda: self._lease.held)
        gauge("simplerl_healthy", "1 while /healthz finds nothing wrong.", lambda: self._ill() is None)

    @classmethod
    async def start(cls, settings: Settings) -> Self:
        """Connects, waits for the Lease and starts working. Raises NotReady."""
        api = await KubernetesApi.connect()
        # long polls hold their connections: the number of running jobs is the bound
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        operation = cls(settings, api, session)
        try:
            await operation._begin()
        except BaseException:
            await operation.stop()
            raise
        _log.info("started", extra={"server": api.server, "namespaces": ",".join(settings.namespaces) or "all"})
        return operation

    async def _begin(self) -> None:
        for kind, who in ((JOB, "the chart's CRD"), (RAY_CLUSTER, "KubeRay 1.6 or newer")):
            if not await self._api.serves(kind):
                raise NotReady(f"the API server does not know {kind.plural}.{kind.group}: install {who}")
        self.queue.start()
        self._lease.start(self._list_now.set)
        self._server = await server.start(self._settings.http_port, self._metrics, self._ill, self._state)
        await self._lease.wait()
        self._tokens.key = await operator_key.ensure(self._api, self._settings.operator_namespace)
        self._resync = asyncio.create_task(self._resync_forever(), name="resync")

    async def stop(self) -> None:
        if self._resync is not None:
            self._resync.cancel()
            await asyncio.gather(self._resync, return_exceptions=True)
        await self.queue.stop()
        await self._progress.close()
        await self._lease.stop()
        if self._server is not None:
            await self._server.cleanup()
        await self._session.close()
        await self._api.close()

    def modified(self, key: Key, version: str) -> None:
        """A job has changed. What we wrote ourselves is no news; the answer to a write may come after its event."""
        asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._unless_ours, key, version)

    def ray_cluster_changed(self, key: Key, cluster: RayCluster, *, gone: bool) -> None:
        """The RayCluster of a job has changed. How the pods of one that thrives fare, they tell themselves; that it
        thrives again is news once."""
        if gone or not cluster.thrives or key in self._ailing:
            self.queue.add(key, SETTLE_SECONDS)
        (self._ailing.discard if gone or cluster.thrives else self._ailing.add)(key)

    def pod_changed(self, key: Key, pod: Pod, *, gone: bool) -> None:
        """A pod of a job has changed. How it ended is noted before it is gone."""
        self.evidence.note(key, pod, gone=gone)
        self.queue.add(key, RISING_SECONDS if pod.comes_up and not gone else SETTLE_SECONDS)

    def _unless_ours(self, key: Key, version: str) -> None:
        if not self._reconcile.wrote(key, version):
            self.queue.add(key)

    def _wake(self, key: Key) -> None:
        self.queue.add(key)

    async def _turn(self, key: Key) -> float | None:
        # without the Lease nothing may be done; with it, all jobs are looked at anew
        return await self._reconcile(key) if self._lease.held else None

    async def _resync_forever(self) -> None:
        """Looks at every job now and then: a watch that went deaf (kopf#1276) delays a job, and does not lose it."""
        pause = self._settings.resync_seconds
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._list_now.wait(), pause)
            self._list_now.clear()
            self._resynced = time.monotonic()
            pause = self._settings.resync_seconds
            try:
                for job in await self._hold_watch_against_list(JOB):
                    self.queue.add((job.namespace, job.name))
                for kind in (RAY_CLUSTER, POD):
                    await self._hold_watch_against_list(kind, names.LABEL_JOB)
                self._missing_right = None
            except (Unavailable, Refused) as error:
                self._missing_right = str(error) if isinstance(error, Refused) else None
                _log.warning("jobs could not be listed", extra={"why": str(error)})
                pause = min(pause, _LIST_AGAIN)

    async def _hold_watch_against_list(self, kind: Kind, labels: str | None = None) -> Sequence[Listed]:
        self.watches.ask(kind.plural)
        found: list[Listed] = []
        for namespace in self._settings.namespaces or (None,):
            found += await self._api.listed(kind, namespace, labels)
        self.watches.compare(kind.plural, {one.uid: one.version for one in found}, time.monotonic())
        return found

    def _ill(self) -> str | None:
        if not self.queue.alive:
            return "a worker has ended"
        if not self._lease.alive:
            return "the loop that renews the Lease has ended"
        if self._resync is not None and self._resync.done():
            return "the loop that lists the jobs has ended"
        if self.queue.oldest > _WAITS_TOO_LONG:
            return f"a job has waited {self.queue.oldest:.0f} s for a worker"
        if self._missing_right is not None:
            return f"what must be watched cannot be listed: {self._missing_right}"
        silent = time.monotonic() - self._resynced
        if self._resync is not None and silent > 3 * self._settings.resync_seconds:
            return f"jobs were last listed {silent:.0f} s ago"
        return self.watches.deaf(time.monotonic())

    def _state(self) -> str:
        return "ok" if self._lease.held else f"ok, while {self._lease.state}"
