"""A pause that the API server asks for, at a real server of HTTP."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from kubernetes.aio import client

from simplerl_operator.kinds import JOB
from simplerl_operator.kubernetes_api import KubernetesApi, Unavailable


class Busy:
    """Answers 429 as long as it is busy."""

    def __init__(self) -> None:
        self.busy = True
        self.asked = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        await asyncio.sleep(0.05)
        if self.busy:
            return web.json_response({"message": "too many"}, status=429, headers={"Retry-After": "1"})
        return web.json_response({"items": []})


@pytest.fixture
async def busy() -> AsyncIterator[tuple[Busy, KubernetesApi]]:
    server = Busy()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api = KubernetesApi(client.Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}"))
    yield server, api
    await api.close()
    await runner.cleanup()


async def ask(api: KubernetesApi, times: int) -> list[object]:
    return await asyncio.gather(*(api.list(JOB, "a") for _ in range(times)), return_exceptions=True)


async def test_a_pause_holds_for_all_and_then_one_goes_ahead(busy: tuple[Busy, KubernetesApi]) -> None:
    server, api = busy
    (first,) = await ask(api, 1)
    assert isinstance(first, Unavailable)
    assert first.pause == 1.0
    answers = await ask(api, 10)
    assert server.asked == 1, "during the pause nothing is sent"
    assert all(isinstance(a, Unavailable) and 0 < a.pause <= 1 for a in answers)

    await asyncio.sleep(1.05)
    await ask(api, 10)
    assert server.asked == 2, "one goes ahead to see"

    server.busy = False
    await asyncio.sleep(1.05)
    answers = await ask(api, 10)
    assert [a for a in answers if not isinstance(a, Unavailable)] == [[]]
    assert server.asked == 3
    assert await ask(api, 10) == [[]] * 10, "it was answered: all follow"
