"""Ray's Jobs REST API (https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html)."""

import json
from collections.abc import Sequence
from typing import Any

import aiohttp

from simplerl_api.progress import LOG_LINES, Progress
from simplerl_operator.observe.observation import Lock, RayJob, RayJobState
from simplerl_operator.redaction import redact

_TIMEOUT = aiohttp.ClientTimeout(total=15, connect=5)
_MAX_BYTES = 64 * 2**20


class HeadSilent(Exception):
    """A head that did not answer, or not in a way that can be understood; names the URL."""


class SubmissionRefused(Exception):
    """Ray does not take the submission; `str()` is its message."""


class RayJobs:
    """The dashboards of all heads, over one session."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def lock(self, base: str, token: str) -> tuple[Lock, str]:
        """Whether the head demands the token, and what speaks against it.

        An open door would let any pod of the cluster run code in the job's pods: 401 without the token and 200 with it
        are the proof (KubeRay before 1.6 ignores authOptions silently).
        """
        url = f"{base}/api/version"
        try:
            without, _ = await self._request("GET", url, None)
            having, _ = await self._request("GET", url, token)
        except HeadSilent as silence:
            return Lock.UNKNOWN, str(silence)
        if without == 200:
            return Lock.OPEN, f"{url} answers without a token"
        if having in (401, 403):
            return Lock.OPEN, f"{url} answers {having} to the job's token"
        if without != 401 or having != 200:
            return Lock.UNKNOWN, f"{url} answers {without} without the token and {having} with it"
        return Lock.ENFORCED, ""

    async def find(self, base: str, token: str, submission: str) -> RayJob | None:
        """The job of this submission id, or None. Once it is over, with its log. Raises HeadSilent."""
        url = f"{base}/api/jobs/{submission}"
        status, text = await self._request("GET", url, token)
        if status == 404:
            return None
        document = _object(url, status, text)
        try:
            state = RayJobState(document.get("status", ""))
        except ValueError:
            raise HeadSilent(f"{url} tells of a state that is not known: {document.get('status')!r}") from None
        message = str(document.get("message") or "")
        code = document.get("driver_exit_code")
        if not state.over:
            return RayJob(state=state, message=message)
        lines = await self._log(base, token, submission) or message.splitlines()
        return RayJob(
            state=state,
            message=message,
            exit_code=code if isinstance(code, int) else None,
            log=tuple(line for line in lines if final_document(line) is None)[-LOG_LINES:],
            final=next((found for line in reversed(lines) if (found := final_document(line)) is not None), None),
        )

    async def submit(self, base: str, token: str, submission: str, entrypoint: str) -> None:
        """Submits the driver. Raises SubmissionRefused or HeadSilent.

        The entrypoint claims no resources, which is how Ray is told to run it on the head.
        """
        url = f"{base}/api/jobs/"
        body = {"entrypoint": entrypoint, "submission_id": submission, "entrypoint_num_cpus": 0}
        status, text = await self._request("POST", url, token, body)
        if status == 200:
            return
        said = " ".join(text.split())
        # a traceback ends with what matters
        raise SubmissionRefused(f"{url} answers {status}: {said if len(said) <= 500 else '…' + said[-500:]}")

    async def _log(self, base: str, token: str, submission: str) -> Sequence[str]:
        url = f"{base}/api/jobs/{submission}/logs"
        status, text = await self._request("GET", url, token)
        if status != 200:
            return ()
        return str(_object(url, status, text).get("logs") or "").splitlines()

    async def _request(
        self, method: str, url: str, token: str | None, body: dict[str, Any] | None = None
    ) -> tuple[int, str]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            async with self._session.request(
                method, url, json=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                content = bytearray()
                async for chunk in response.content.iter_chunked(2**16):
                    content += chunk
                    if len(content) > _MAX_BYTES:
                        raise HeadSilent(f"{url} answers with more than {_MAX_BYTES} bytes")
                return response.status, redact(content.decode(errors="replace"), token)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise HeadSilent(f"{url} does not answer: {str(error) or 'timed out'}") from error


def final_document(line: str) -> Progress | None:
    """The driver's last document in a line of its log: `{"event": "final", "progress": {…}}`."""
    if '"final"' not in line:
        return None
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, dict) or document.get("event") != "final":
        return None
    try:
        return Progress.model_validate(document.get("progress"))
    except ValueError:
        return None


def _object(url: str, status: int, text: str) -> dict[str, Any]:
    if status != 200:
        raise HeadSilent(f"{url} answers {status}: {' '.join(text.split())[:300]}")
    try:
        document = json.loads(text)
    except ValueError:
        raise HeadSilent(f"{url} answers with something that is not JSON: {text[:200]!r}") from None
    if not isinstance(document, dict):
        raise HeadSilent(f"{url} answers with something that is not an object: {text[:200]!r}")
    return document
