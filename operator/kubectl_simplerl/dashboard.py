"""A browser's way to a job: local ports that add the job's token to what they pass on.

Whoever reaches Ray's dashboard with the token can run code in the job's pods. So the local ports listen on loopback
alone, and answer only a browser that has opened the printed address: its key becomes a cookie. That keeps out other
users of the machine and other pages in the browser.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from kubectl_simplerl import head, report
from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.head import Head
from kubectl_simplerl.outcome import Fault
from simplerl_operator.kubernetes_api import Unavailable

_KEY = "key"
_LOOK_SECONDS = 5.0
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10, sock_read=120)
_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade",
})  # fmt: skip
_NOT_SENT = _HOP_BY_HOP | {"host", "authorization", "x-ray-authorization", "cookie", "content-length", "origin"}
_NOT_RETURNED = _HOP_BY_HOP | {"content-length", "content-encoding", "set-cookie"}


@asynccontextmanager
async def served(cluster: Cluster, name: str, port: int) -> AsyncIterator[dict[str, str]]:
    """The addresses of the live page and of Ray's dashboard, while the context is open. Raises Fault."""
    job = await cluster.job(name)
    async with head.reached(cluster, job) as reached:
        page = await _start(Proxy(reached, reached.driver), port)
        try:
            dashboard = await _start(Proxy(reached, reached.dashboard), port + 1 if port else 0)
            try:
                yield {"page": page.address, "dashboard": dashboard.address}
            finally:
                await dashboard.stop()
        finally:
            await page.stop()


async def until_over(cluster: Cluster, name: str) -> None:
    """Waits until the job is over or its head is gone."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        try:
            job = await cluster.job(name)
            if report.over(job):
                return
            await head.pod_of(cluster, job)
        except Unavailable:
            continue
        except Fault:
            return


class Proxy:
    """One local port."""

    def __init__(self, reached: Head, base: str) -> None:
        self._head = reached
        self._base = base
        self._key = secrets.token_urlsafe(24)
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?{_KEY}={self._key}"

    async def start(self, port: int) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        cookie = f"simplerl-{self.port}"  # cookies are shared by all ports of a host
        if secrets.compare_digest(request.query.get(_KEY, "").encode(), self._key.encode()):
            welcome = web.Response(status=303, headers={"Location": "/"})
            welcome.set_cookie(cookie, self._key, httponly=True, samesite="Strict")
            return welcome
        if not secrets.compare_digest(request.cookies.get(cookie, "").encode(), self._key.encode()):
            return web.Response(status=403, text="open the address that kubectl simplerl dashboard has printed\n")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return web.Response(status=501, text="this proxy passes no WebSockets on\n")
        response: web.StreamResponse | None = None
        sent = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_SENT}
        try:
            async with self._head.session.request(
                request.method,
                self._base + request.path_qs,
                headers={**sent, **self._head.headers},
                data=await request.read(),
                timeout=_TIMEOUT,
                allow_redirects=False,
            ) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_RETURNED}
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                async for chunk in answer.content.iter_chunked(2**16):
                    await response.write(chunk)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if response is not None:
                raise  # half of it is sent: the browser must see that the rest is missing
            return web.Response(status=502, text=f"the head does not answer: {str(error) or 'timed out'}\n")


async def _start(proxy: Proxy, port: int) -> Proxy:
    try:
        await proxy.start(port)
    except OSError as error:
        raise Fault(f"port {port} of 127.0.0.1 cannot be opened: {error.strerror or error}") from error
    return proxy
