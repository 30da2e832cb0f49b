"""A dashboard and a driver for every head of a fleet, in one process: `python -m benchmarks.operator.heads PORT`.

Any path `/<namespace>/<cluster>/…` is a head. A submitted driver starts for `--starting-seconds` and then does
a step every `--step-seconds`, each job at a moment of its own, until `--steps` are done.
"""

import argparse
import asyncio
import time
import zlib
from collections.abc import Mapping
from typing import Any

from aiohttp import web

_METRICS = {name: 0.5 for name in ("reward", "accuracy", "kl", "entropy", "clip_fraction", "response_length")}


class Fleet:
    """All heads."""

    def __init__(self, starting_seconds: float, step_seconds: float, steps: int) -> None:
        self._starting_seconds = starting_seconds
        self._step_seconds = step_seconds
        self._steps = steps
        self._begins: dict[str, float] = {}  # when each driver has started, by the monotonic clock

    def app(self) -> web.Application:
        app = web.Application()
        at = "/{namespace}/{cluster}"
        app.add_routes([
            web.get(at + "/api/version", self._version),
            web.post(at + "/api/jobs/", self._submit),
            web.get(at + "/api/jobs/{id}", self._job),
            web.get(at + "/progress", self._progress),
        ])  # fmt: skip
        return app

    async def _version(self, request: web.Request) -> web.Response:
        status = 200 if "Authorization" in request.headers else 401
        return web.json_response({"ray_version": "2.60.0"}, status=status)

    async def _submit(self, request: web.Request) -> web.Response:
        submission = (await request.json())["submission_id"]
        self._begins.setdefault(submission, time.monotonic() + self._starting_seconds)
        return web.json_response({"submission_id": submission})

    async def _job(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in self._begins:
            return web.Response(status=404)
        return web.json_response({"status": "RUNNING", "message": "", "driver_exit_code": None})

    async def _progress(self, request: web.Request) -> web.Response:
        cluster = request.match_info["cluster"]
        begins = self._begins.get(cluster)
        if begins is None:
            return web.Response(status=503)
        # steps of jobs that began together do not end together
        since = begins - zlib.crc32(cluster.encode()) % 1000 / 1000 * self._step_seconds
        seen, until = int(request.query["since"]), time.monotonic() + float(request.query["wait"])
        while True:
            now = time.monotonic()
            training = now >= begins
            step = min(self._steps, int((now - since) / self._step_seconds)) if training else 0
            sequence = step + 1 + training
            if sequence > seen or now >= until or step >= self._steps:
                return web.json_response(self._document(cluster, step, sequence, training))
            news = since + (step + 1) * self._step_seconds if training else begins
            await asyncio.sleep(max(0.01, min(until, news) - now))

    def _document(self, submission: str, step: int, sequence: int, training: bool) -> Mapping[str, Any]:
        state = "Succeeded" if step >= self._steps else "Training" if training else "Starting"
        return {
            "schemaVersion": 1,
            "submissionId": submission,
            "sequence": sequence,
            "state": state,
            "step": step,
            "totalSteps": self._steps,
            "metrics": {**_METRICS, "reward": step / self._steps},
            "evaluations": [],
            "etaSeconds": (self._steps - step) * self._step_seconds,
            "log": [f'{{"message": "step done", "step": {step}}}'] * 40,
            "lastProgress": time.time(),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--starting-seconds", type=float, default=1.0)
    parser.add_argument("--step-seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    fleet = Fleet(given.starting_seconds, given.step_seconds, given.steps)
    web.run_app(fleet.app(), host="127.0.0.1", port=given.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
