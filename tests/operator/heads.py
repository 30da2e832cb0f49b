"""Stand-ins for the heads of Ray clusters: a dashboard with Jobs API and a driver's /progress, one server for all jobs
of a test run, told apart by the path `/<namespace>/<cluster>/…`."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class StandIn:
    """One head, in the state that the test gives it."""

    up: bool = True
    """Whether the dashboard answers."""
    locked: bool = True
    """Whether it demands a token."""
    wrong_token: bool = False
    """Whether it refuses the token that is given."""
    refuse_submission: str = ""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: str = ""
    actors: dict[str, str] = field(default_factory=dict)
    """The output of each training rank, by its actor's id."""
    workers: int = 3
    """Nodes of Ray that live, without the head's."""
    history: dict[str, Any] = field(default_factory=dict)
    progress: dict[str, Any] | None = None
    """The driver's document; None: nobody listens."""
    tokens: set[str] = field(default_factory=set)
    submissions: list[dict[str, Any]] = field(default_factory=list)
    polls: int = 0
    controls: list[dict[str, Any]] = field(default_factory=list)
    """What was asked of the driver by PUT /control."""
    drains_to: dict[str, Any] | None = None
    """What the driver says once it is asked to drain; None: it does not listen."""

    def say(self, **changes: Any) -> None:
        """Changes the driver's document."""
        before = self.progress or {}
        self.progress = {**before, **changes, "sequence": before.get("sequence", 0) + 1}


class Heads:
    """The server, in a thread of its own."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], StandIn] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def head(self, namespace: str, cluster: str) -> StandIn:
        return self._heads.setdefault((namespace, cluster), StandIn())

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(20)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    async def _end(self) -> None:
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}  # long polls
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self) -> None:
        app = web.Application()
        # at the root is the head that a forwarded port leads to
        for at in ("", "/{namespace}/{cluster}"):
            app.add_routes([
                web.get(at + "/api/version", self._version),
                web.post(at + "/api/jobs/", self._submit),
                web.get(at + "/api/jobs/{id}", self._job),
                web.get(at + "/api/jobs/{id}/logs", self._logs),
                web.get(at + "/api/v0/actors", self._actors),
                web.get(at + "/api/v0/nodes", self._nodes),
                web.get(at + "/api/v0/logs/{media}", self._log_lines),
                web.get(at + "/progress", self._progress),
                web.get(at + "/history", self._history),
                web.get(at + "/", self._page),
                web.put(at + "/control", self._control),
            ])  # fmt: skip
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def _at(self, request: web.Request) -> StandIn:
        return self.head(request.match_info.get("namespace", ""), request.match_info.get("cluster", ""))

    def _door(self, request: web.Request) -> web.Response | None:
        head = self._at(request)
        if not head.up:
            request.transport.close()  # type: ignore[union-attr]
            return web.Response(status=500)
        given = request.headers.get("Authorization", "")
        if head.locked and not given:
            return web.Response(status=401, text="Unauthorized: Missing authentication token")
        if given and head.wrong_token:
            return web.Response(status=403, text="Forbidden: Invalid authentication token")
        if given:
            head.tokens.add(given.removeprefix("Bearer "))
        return None

    async def _version(self, request: web.Request) -> web.Response:
        return self._door(request) or web.json_response({"version": "4", "ray_version": "2.60.0"})

    async def _submit(self, request: web.Request) -> web.Response:
        if (no := self._door(request)) is not None:
            return no
        head, body = self._at(request), await request.json()
        if head.refuse_submission:
            return web.Response(status=500, text=head.refuse_submission)
        if body["submission_id"] in head.jobs:
            return web.Response(status=400, text="already exists")
        head.submissions.append(body)
        head.jobs[body["submission_id"]] = {"status": "PENDING", "message": "", "driver_exit_code": None}
        return web.json_response({"submission_id": body["submission_id"]})

    async def _job(self, request: web.Request) -> web.Response:
        if (no := self._door(request)) is not None:
            return no
        job = self._at(request).jobs.get(request.match_info["id"])
        return web.Response(status=404, text="does not exist") if job is None else web.json_response(job)

    async def _logs(self, request: web.Request) -> web.Response:
        return self._door(request) or web.json_response({"logs": self._at(request).log})

    async def _actors(self, request: web.Request) -> web.Response:
        if (no := self._door(request)) is not None:
            return no
        found = [
            {"actor_id": id, "class_name": "RankActor", "state": "ALIVE", "pid": 100 + i, "node_id": "0123456789"}
            for i, id in enumerate(self._at(request).actors)
        ]
        other = {"actor_id": "e", "class_name": "EngineActor", "state": "ALIVE", "pid": 1, "node_id": "n"}
        return web.json_response({"result": True, "msg": "", "data": {"result": {"result": [other, *found]}}})

    async def _nodes(self, request: web.Request) -> web.Response:
        if (no := self._door(request)) is not None:
            return no
        found = [
            {"node_ip": f"10.0.0.{i}", "is_head_node": i == 0, "state": "ALIVE", "resources_total": {"CPU": 1.0}}
            for i in range(self._at(request).workers + 1)
        ]
        return web.json_response({"result": True, "msg": "", "data": {"result": {"result": found}}})

    async def _log_lines(self, request: web.Request) -> web.StreamResponse:
        """As Ray's: `file` is what there is, `stream` goes on for as long as the head lives."""
        if (no := self._door(request)) is not None:
            return no
        head, query = self._at(request), request.query
        ray_job = query.get("submission_id")
        if ray_job is not None and ray_job not in head.jobs:
            return web.Response(status=500, text=f"no job {ray_job}")

        def there() -> str:
            if ray_job is not None:
                return head.log
            return head.actors[query["actor_id"]] if query.get("suffix", "out") == "out" else ""

        text, count = there(), int(query["lines"])
        lines = text.splitlines(keepends=True)
        shown = "".join(lines if count < 0 else lines[max(0, len(lines) - count) :])
        if request.match_info["media"] == "file":
            return web.Response(text=shown)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(shown.encode())
        sent = len(text)
        while head.up:
            if len(there()) > sent:
                await response.write(there()[sent:].encode())
                sent = len(there())
            await asyncio.sleep(0.02)
        return response

    async def _history(self, request: web.Request) -> web.Response:
        return self._door(request) or web.json_response(self._at(request).history)

    async def _page(self, request: web.Request) -> web.Response:
        return self._door(request) or web.Response(text="<h1>a page</h1>", content_type="text/html")

    async def _control(self, request: web.Request) -> web.Response:
        head, body = self._at(request), await request.json()
        head.controls.append(body)
        if body.get("drain") and head.drains_to is not None:
            head.say(**head.drains_to)
        return web.json_response(body, status=202)

    async def _progress(self, request: web.Request) -> web.Response:
        head = self._at(request)
        head.polls += 1
        until = asyncio.get_running_loop().time() + float(request.query["wait"])
        while True:
            if head.progress is None:
                request.transport.close()  # type: ignore[union-attr]
                return web.Response(status=503)
            if head.progress["sequence"] > int(request.query["since"]) or asyncio.get_running_loop().time() >= until:
                return web.json_response(head.progress)
            await asyncio.sleep(0.02)
