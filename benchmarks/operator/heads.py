"""A dashboard and a driver for every head of a fleet, in one process: `python -m benchmarks.operator.heads PORT`.

Any path `/<namespace>/<cluster>/…` is a head. A submitted driver starts for a second and then does a step every
`--step-seconds`, each job at a moment of its own, until `--steps` are done.
"""

import argparse
import asyncio
import time
import zlib
from collections.abc import Mapping
from typing import Any

from aiohttp import web

_STARTING_SECONDS = 1.0
_METRICS = {name: 0.5 for name in ("reward", "accuracy", "kl", "entropy", "clip_fraction", "response_length")}


class Fleet:
    """All heads."""

    def __init__(self, step_seconds: float, steps: int) -> None:
        self._step_seconds = step_seconds
        self._steps = steps
        self._submitted: dict[str, float] = {}

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
        # steps of jobs that began together do not end together
        early = zlib.crc32(submission.encode()) % 1000 / 1000 * self._step_seconds
        self._submitted.setdefault(submission, time.monotonic() + _STARTING_SECONDS - early)
        return web.json_response({"submission_id": submission})

    async def _job(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in self._submitted:
            return web.Response(status=404)
        return web.json_response({"status": "RUNNING", "message": "", "driver_exit_code": None})

    async def _progress(self, request: web.Request) -> web.Response:
        cluster = request.match_info["cluster"]
        since = self._submitted.get(cluster)
        if since is None:
            return web.Response(status=503)
        seen, until = int(request.query["since"]), time.monotonic() + float(request.query["wait"])
        while True:
            now = time.monotonic()
            step = min(self._steps, int(max(0.0, now - since) / self._step_seconds))
            sequence = step + 1 + (now >= since)
            if sequence > seen or now >= until or step >= self._steps:
                return web.json_response(self._document(cluster, step, sequence, now >= since))
            await asyncio.sleep(max(0.01, min(until, since + (step + 1) * self._step_seconds) - now))

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
    parser.add_argument("--step-seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    web.run_app(
        Fleet(given.step_seconds, given.steps).app(), host="127.0.0.1", port=given.port, print=None, access_log=None
    )


if __name__ == "__main__":
    main()
