"""/healthz and /metrics."""

from collections.abc import Callable

from aiohttp import web

from simplerl_operator.metrics import CONTENT_TYPE, Metrics


async def start(port: int, metrics: Metrics, ill: Callable[[], str | None]) -> web.AppRunner:
    """Serves until the runner is cleaned up; `ill` says what is wrong with the operator, or None."""

    async def health(request: web.Request) -> web.Response:
        wrong = ill()
        return web.Response(text="ok\n") if wrong is None else web.Response(text=f"{wrong}\n", status=503)

    async def figures(request: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", health), web.get("/metrics", figures)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner
