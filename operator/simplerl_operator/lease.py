"""One writer: a Lease in the operator's namespace is taken before any work, renewed, and asked before every write.

Times of other operators are not compared with ours: a Lease is free once it has stood unchanged, by our own clock, for
as long as its holder promised to renew it in (as in client-go's leaderelection).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from simplerl_operator.kinds import LEASE
from simplerl_operator.kubernetes_api import Document, KubernetesApi, Refused, Unavailable

DURATION = 15
"""Seconds after which others may take a Lease that its holder no longer renews."""
_MARGIN = 3.0
"""Seconds by which the holder stops earlier than others may begin."""
_RENEW, _RETRY = 4.0, 2.0
"""Seconds between two renewals, and between two tries to get it."""
_ANSWER = 6.0
"""Seconds for an answer of the API server."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sight:
    """A Lease as it was first seen at a resourceVersion."""

    version: str
    at: float
    """When, by our monotonic clock."""


def holder(document: Document) -> str:
    return str(document.get("spec", {}).get("holderIdentity") or "")


def free(document: Document, sight: Sight, identity: str, now: float) -> bool:
    """Whether the Lease may be taken: nobody's, our own, or one that its holder let lapse."""
    if holder(document) in ("", identity):
        return True
    return now >= sight.at + float(document["spec"].get("leaseDurationSeconds") or DURATION)


def taken(document: Document, identity: str, at: datetime) -> Document:
    """The Lease in our hands, renewed."""
    spec, time = document.get("spec", {}), at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    ours = holder(document) == identity
    return {
        **document,
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": DURATION,
            "acquireTime": spec.get("acquireTime", time) if ours else time,
            "renewTime": time,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (0 if ours else 1),
        },
    }


class Lease:
    """Ours, or somebody else's."""

    def __init__(self, api: KubernetesApi, namespace: str, name: str, identity: str) -> None:
        self._api = api
        self._namespace, self._name, self._identity = namespace, name, identity
        self._sight = Sight("", 0.0)
        self._until = 0.0
        self._got = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._other = ""  # who holds it in our place
        self._trouble = ""

    @property
    def held(self) -> bool:
        """Whether it is ours at this moment."""
        return time.monotonic() < self._until

    @property
    def alive(self) -> bool:
        """Whether it is striven for."""
        return self._task is not None and not self._task.done()

    @property
    def state(self) -> str:
        """Who holds it, in a few words."""
        if self.held:
            return "the Lease is ours"
        return f"{self._other or 'nobody'} holds the Lease" + (f": {self._trouble}" if self._trouble else "")

    def start(self, again: Callable[[], None]) -> None:
        """Begins to strive for it; `again` is called each time that it has been got."""
        self._task = asyncio.create_task(self._strive(again), name="lease")

    async def wait(self) -> None:
        """Until it is ours."""
        await self._got.wait()

    async def stop(self) -> None:
        """Gives it back, so that a successor need not wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if not self.held:
            return
        self._until = 0.0
        try:
            found = await self._api.get(LEASE, self._namespace, self._name)
            if found is not None and holder(found) == self._identity:
                found["spec"]["holderIdentity"] = ""
                await self._api.replace(LEASE, self._namespace, self._name, found)
        except (Unavailable, Refused) as error:
            _log.warning("the Lease could not be given back", extra={"why": str(error)})

    async def _strive(self, again: Callable[[], None]) -> None:
        while True:
            was = self.held
            try:
                async with asyncio.timeout(_ANSWER):
                    await self._turn()
                self._trouble = ""
            except (Unavailable, Refused, TimeoutError) as error:
                self._trouble = str(error) or "the API server did not answer in time"
                _log.warning("the Lease could not be renewed", extra={"why": self._trouble})
            if self.held and not was:
                _log.info("the Lease is ours", extra={"identity": self._identity})
                self._got.set()
                again()
            await asyncio.sleep(_RENEW if self.held else _RETRY)

    async def _turn(self) -> None:
        asked = time.monotonic()
        found = await self._api.get(LEASE, self._namespace, self._name)
        at = datetime.now(UTC)
        if found is None:
            blank = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": self._name, "namespace": self._namespace},
            }
            await self._api.create(LEASE, self._namespace, taken(blank, self._identity, at))
        else:
            version = found["metadata"]["resourceVersion"]
            if version != self._sight.version:
                self._sight = Sight(version, asked)
            if not free(found, self._sight, self._identity, asked):
                self._other, self._until = holder(found), 0.0
                return
            await self._api.replace(LEASE, self._namespace, self._name, taken(found, self._identity, at))
        self._other, self._until = "", asked + DURATION - _MARGIN
