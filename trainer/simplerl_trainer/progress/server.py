"""The driver's HTTP server: /progress, /control and the page for holders of the token, /metrics for Prometheus."""

import asyncio
import base64
import hmac
from importlib import resources
from typing import Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from simplerl_api import validation
from simplerl_trainer.progress import metrics
from simplerl_trainer.progress.control import Control, Refused
from simplerl_trainer.progress.reporter import Reporter

LONGEST_WAIT = 60.0
"""Seconds that one long poll may wait."""
MOST_POINTS = 500
"""About so many steps of the curves are sent."""


class Server:
    """Serves a reporter's document while the context is open.

    `token`: what `Authorization: Bearer` must hold, or the password that a browser asks for (of any user); None leaves
    the server open, for runs on one's own machine.
    """

    def __init__(self, reporter: Reporter, control: Control, *, token: str | None, port: int, host: str) -> None:
        self._reporter, self._control, self._token, self._host = reporter, control, token, host
        self.port = port
        self._read = asyncio.Event()
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/progress", self._progress)
        app.router.add_put("/control", self._change)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/", self._page)
        app.router.add_get("/history", self._history)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def final_read(self, seconds: float) -> bool:
        """Waits until somebody has read the last document, at most `seconds`; returns whether it was."""
        try:
            await asyncio.wait_for(self._read.wait(), seconds)
        except TimeoutError:
            return False
        await asyncio.sleep(0.2)  # the answer is on its way; the process ends next
        return True

    @web.middleware
    async def _guard(self, request: web.Request, handler: web.RequestHandler) -> web.StreamResponse:  # type: ignore[override]
        if self._token is not None and request.path != "/metrics":
            given = _given_token(request.headers.get("Authorization", ""))
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise web.HTTPUnauthorized(
                    text="give the job's token: Authorization: Bearer TOKEN, or as the password of any user\n",
                    headers={"WWW-Authenticate": 'Basic realm="the token of the job", charset="UTF-8"'},
                )
        return await handler(request)  # type: ignore[operator, no-any-return]

    async def _progress(self, request: web.Request) -> web.Response:
        try:
            since, wait = int(request.query.get("since", "0")), float(request.query.get("wait", "0"))
        except ValueError as e:
            raise web.HTTPBadRequest(text="since is a whole number and wait a number of seconds\n") from e
        document = await self._reporter.newer(since, min(max(wait, 0.0), LONGEST_WAIT))
        response = web.json_response(document.document())
        if document.finished:
            self._read.set()
        return response

    async def _change(self, request: web.Request) -> web.Response:
        try:
            asked = self._control.apply(await request.json())
        except validation.InvalidJob as e:
            raise web.HTTPBadRequest(text=f"{e}\n") from e
        except Refused as e:
            raise web.HTTPConflict(text=f"{e}\n") from e
        except ValueError as e:  # neither JSON nor UTF-8
            raise web.HTTPBadRequest(text='the body is not JSON: give an object such as {"engines": 2}\n') from e
        self._reporter.engines_desired(self._control.engines)
        return web.json_response(asked.document(), status=202)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=metrics.render(self._reporter), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _history(self, _: web.Request) -> web.Response:
        each = max(1, len(self._reporter.steps) // MOST_POINTS)
        steps = [{"step": p.step, "reward": p.reward, "seconds": p.seconds} for p in self._reporter.steps[::each]]
        accuracies = {name: [a.document() for a in found] for name, found in self._reporter.accuracies.items()}
        return web.json_response({"steps": steps, "evaluations": accuracies})

    async def _page(self, _: web.Request) -> web.Response:
        text = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        return web.Response(text=text, content_type="text/html")


def _given_token(authorization: str) -> str:
    kind, _, value = authorization.partition(" ")
    match kind.lower():
        case "bearer":
            return value
        case "basic":
            try:
                return base64.b64decode(value, validate=True).decode().partition(":")[2]
            except ValueError:  # neither base64 nor UTF-8
                return ""
        case _:
            return ""
