"""/healthz and /metrics."""

from collections.abc import Callable

from aiohttp import web

from simplerl_operator.metrics import CONTENT_TYPE, Metrics


async def start(port: int, metrics: Metrics, ill: Callable[[], str | None], state: Callable[[], str]) -> web.AppRunner:
    """Serves until the runner is cleaned up; `ill` says what is wrong with the operator, or None, and `state` what it
    does while nothing is."""

    async def health(request: web.Request) -> web.Response:
        wrong = ill()
        return web.Response(text=f"{wrong or state()}\n", status=200 if wrong is None else 503)

    async def figures(request: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", health), web.get("/metrics", figures)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner
