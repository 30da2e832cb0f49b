"""Follows the /progress of running drivers: one long poll a job, which puts the job into the work queue on news."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import aiohttp

from simplerl_api.progress import Progress
from simplerl_operator import clock
from simplerl_operator.observe.job import Key
from simplerl_operator.redaction import redact

_log = logging.getLogger(__name__)

_WAIT_SECONDS = 30
_TIMEOUT = aiohttp.ClientTimeout(total=_WAIT_SECONDS + 15, connect=5)
_ASK_TIMEOUT = aiohttp.ClientTimeout(total=10, connect=5)
_PAUSE_SECONDS = 0.5
"""Between two polls: the document changes with every sample."""
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 15.0


_NEWS = {
    "state", "step", "total_steps", "evaluations", "checkpoint", "model", "failure", "non_finite", "engines"
}  # fmt: skip


@dataclass
class Followed:
    """A driver and what it last said."""

    url: str
    submission: str
    progress: Progress | None = None
    silence: str = ""
    """How the newest poll failed; empty where it did not."""
    silent_since: float | None = None
    marker: float | None = None
    """When anything last moved, by the driver's clock: it may be wrong, and is held against that clock alone."""
    moved: float = 0.0
    """When that was, by ours."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class ProgressClient:
    """All drivers that are followed. `last_progress` of what they say is told by our clock."""

    def __init__(self, session: aiohttp.ClientSession, wake: Callable[[Key], None], clock: Callable[[], float]) -> None:
        self._session = session
        self._wake = wake
        self._clock = clock
        self._followed: dict[Key, Followed] = {}

    def follow(self, key: Key, url: str, submission: str, token: str) -> Followed:
        """What the driver of a submission last said; follows it from the first call on."""
        followed = self._followed.get(key)
        if followed is None or (followed.url, followed.submission) != (url, submission):
            self.forget(key)
            followed = self._followed[key] = Followed(url, submission)
            followed.task = asyncio.create_task(self._poll(key, followed, token), name=f"progress of {submission}")
        return followed

    def last(self, key: Key, submission: str) -> Progress | None:
        """What the driver of a submission last said, also where its head is gone; None where it is not followed."""
        followed = self._followed.get(key)
        return followed.progress if followed is not None and followed.submission == submission else None

    def forget(self, key: Key) -> None:
        """Stops following a job's driver."""
        followed = self._followed.pop(key, None)
        if followed is not None and followed.task is not None:
            followed.task.cancel()

    async def control(self, url: str, token: str, wishes: Mapping[str, object]) -> None:
        """Asks something of a driver; one that does not hear is asked again with the next look at its job."""
        try:
            async with self._session.put(
                f"{url}/control",
                json=wishes,
                headers={"Authorization": f"Bearer {token}"},
                timeout=_ASK_TIMEOUT,
                allow_redirects=False,
            ) as response:
                if response.status >= 300:
                    text = " ".join((await response.text()).split())[:200]
                    _log.warning(
                        "a driver does not do as it is asked",
                        extra={"url": url, "why": f"status {response.status}: {text}"},
                    )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _log.warning("a driver does not do as it is asked", extra={"url": url, "why": str(error) or "timed out"})

    async def close(self) -> None:
        tasks = [f.task for f in self._followed.values() if f.task is not None]
        for key in list(self._followed):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _poll(self, key: Key, followed: Followed, token: str) -> None:
        wait, retry = 0, _FIRST_RETRY
        while True:
            since = followed.progress.sequence if followed.progress is not None else 0
            try:
                document, still = await self._get(followed, token, since, wait)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                said = str(error) or "timed out"
                followed.silence = f"the driver's {followed.url}/progress does not answer: {said}"
                if followed.silent_since is None:
                    followed.silent_since = self._clock()
                self._wake(key)  # so that Ray's Jobs API is asked in its place
                await asyncio.sleep(retry)
                wait, retry = 0, min(2 * retry, _LONGEST_RETRY)
                continue
            if document.last_progress != followed.marker:
                # of a driver that stood still before it was first heard the rest of its time is left, however often
                # an operator begins anew
                stood = still if followed.marker is None else 0.0
                followed.marker, followed.moved = document.last_progress, self._clock() - stood
            document = document.model_copy(update={"last_progress": followed.moved})
            news = followed.silence != "" or _matters(document) != _matters(followed.progress)
            followed.progress, followed.silence, followed.silent_since = document, "", None
            wait, retry = _WAIT_SECONDS, _FIRST_RETRY
            if news:
                self._wake(key)
            if document.finished:
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _get(self, followed: Followed, token: str, since: int, wait: int) -> tuple[Progress, float]:
        """The driver's document, and for how many seconds nothing has moved there."""
        async with self._session.get(
            f"{followed.url}/progress",
            params={"since": str(since), "wait": str(wait)},
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            allow_redirects=False,
        ) as response:
            text, date = redact(await response.text(), token), response.headers.get("Date", "")
            if response.status != 200:
                raise ValueError(f"status {response.status}: {' '.join(text.split())[:200]}")
        document = Progress.model_validate_json(text)
        if document.submission_id != followed.submission:
            raise ValueError(f"it speaks of {document.submission_id}, not of {followed.submission}")
        return document, _still(document, date)


def _still(document: Progress, date: str) -> float:
    """Seconds since anything moved, both times by the driver's clock; 0 where its answer has no date."""
    now = clock.http_date(date)
    return 0.0 if now is None else max(0.0, now - document.last_progress)


def _matters(progress: Progress | None) -> object:
    """What a job is looked at again for; samples and seconds that pass are not."""
    if progress is None:
        return None
    return progress.model_dump(include=_NEWS)
