"""A proxy between an operator and the API server: it counts what is asked, and makes trouble when told to."""

import asyncio
import json
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.operator.control_plane import ControlPlane

_FORWARDED = ("Authorization", "Content-Type", "Accept", "User-Agent")
_GONE = {
    "type": "ERROR",
    "object": {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A request."""

    at: float
    method: str
    path: str
    watch: bool
    agent: str

    @property
    def by_kopf(self) -> bool:
        return self.agent.startswith("kopf")


class Proxy:
    """One proxy, in a thread of its own. Fields may be changed at any time."""

    def __init__(self, plane: ControlPlane) -> None:
        self.asked: list[Asked] = []
        self.down = False
        """Every connection is closed without an answer, open watches too."""
        self.retry_after: int | None = None
        """Seconds: every request but watches is answered by 429."""
        self.delay = 0.0
        """Seconds before every answer."""
        self.gone = False
        """Watches end at once: what they ask for is too old."""
        self.deaf = False
        """Watches stay open and tell nothing."""
        self._plane = plane
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._watches: dict[int, web.Request] = {}  # by identity: requests compare by what they carry
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(20)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def kubeconfig(self, folder: Path, token: str) -> Path:
        """A kubeconfig that leads through the proxy."""
        document = json.loads(self._plane.kubeconfig(token).read_text())
        document["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        path = folder / f"proxy-{self.port}.kubeconfig"
        path.write_text(json.dumps(document))
        return path

    def cut(self) -> None:
        """Ends all open watches."""
        for request in list(self._watches.values()):
            if request.transport is not None:
                self._loop.call_soon_threadsafe(request.transport.abort)

    def since(self, at: float) -> list[Asked]:
        return [asked for asked in self.asked if asked.at >= at]

    def writes(self, at: float = 0.0) -> list[Asked]:
        """What changes anything but a Lease."""
        return [a for a in self.since(at) if a.method != "GET" and "/leases" not in a.path and "dryRun" not in a.path]

    async def _serve(self) -> None:
        context = ssl.create_default_context(cafile=str(self._plane.folder / "tls.crt"))
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=context))
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def _end(self) -> None:
        for request in list(self._watches.values()):
            if request.transport is not None:
                request.transport.abort()
        await self._runner.cleanup()
        await self._session.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        watch = request.query.get("watch") in ("1", "true")
        agent = request.headers.get("User-Agent", "")
        self.asked.append(Asked(time.monotonic(), request.method, request.path_qs, watch, agent))
        if self.down:
            return self._drop(request)
        if self.retry_after is not None and not watch:
            return web.json_response(
                {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "too many requests"},
                status=429,
                headers={"Retry-After": str(self.retry_after)},
            )
        await asyncio.sleep(self.delay)
        if watch and self.gone:
            return web.json_response(_GONE)
        return await (self._watch(request) if watch else self._answer(request))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        async with self._upstream(request, body) as answer:
            text = await answer.read()
            if self.down:
                return self._drop(request)
            return web.Response(status=answer.status, body=text, content_type=answer.content_type)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        async with self._upstream(request, None) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            self._watches[id(request)] = request
            try:
                async for line in answer.content.iter_any():
                    if not self.deaf:
                        await response.write(line)
            finally:
                del self._watches[id(request)]
            return response

    def _upstream(self, request: web.Request, body: bytes | None) -> Any:
        headers = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
        url = self._plane.url + str(request.rel_url)
        timeout = aiohttp.ClientTimeout(total=600)
        return self._session.request(request.method, url, data=body or None, headers=headers, timeout=timeout)

    def _drop(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)
