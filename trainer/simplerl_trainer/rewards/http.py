"""Scores from a service: batches of samples, posted as JSON."""

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

import aiohttp
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.rewards import Reward
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Outcome, Verdict, failure, unusable

MOST_REQUESTS = 8
"""Requests that are under way at once."""
LONGEST_PAUSE_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.5


class _Passing(Exception):
    """A fault that may pass: another try may go well."""


class _Lasting(Exception):
    """A fault that stays."""


class Service:
    """The service of one reward. To be used in one event loop; `close` ends its connections."""

    def __init__(self, reward: Reward, field: str, token: str | None) -> None:
        """`field` is the reward's path in the spec, for messages."""
        assert reward.http is not None
        self._reward, self._http, self._field = reward, reward.http, field
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self._turn = asyncio.Semaphore(MOST_REQUESTS)

    async def check(self) -> None:
        """Asks for the scores of no samples.

        Raises TrainerFailure(INVALID_INPUT) where the service does not answer as documented.
        """
        try:
            await self._ask([])
        except (_Passing, _Lasting) as e:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f'{self._field}.http.url is {self._http.url}, which {e} when asked for {{"samples": []}}: start the '
                "service, or correct the url",
            ) from e

    async def score(self, cases: Sequence[Case]) -> list[Outcome]:
        """The outcomes of all cases, in their order; those without a number are failures that say why."""
        size = self._http.batch_size
        batches = [cases[i : i + size] for i in range(0, len(cases), size)]
        return [o for outcomes in await asyncio.gather(*map(self._batch, batches)) for o in outcomes]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _batch(self, cases: Sequence[Case]) -> list[Outcome]:
        try:
            async with self._turn:
                scores = await self._ask([_sample(case) for case in cases])
        except (_Passing, _Lasting) as e:
            verdict = Verdict.TIMEOUT if isinstance(e.__cause__, TimeoutError) else Verdict.FAILED
            return [failure(self._reward, verdict, f"{self._http.url} {e}")] * len(cases)
        return [self._outcome(score) for score in scores]

    def _outcome(self, score: Any) -> Outcome:
        number = isinstance(score, int | float) and not isinstance(score, bool)
        if not number or (isinstance(score, float) and not math.isfinite(score)):
            shown = json.dumps(score)[:80]
            return failure(self._reward, Verdict.FAILED, f"{self._http.url} gave {shown}, which is no finite number")
        if why := unusable(score):
            return failure(self._reward, Verdict.FAILED, f"{self._http.url} gave {why}")
        return Outcome(float(score), Verdict.SCORED)

    async def _ask(self, samples: Sequence[dict[str, Any]]) -> list[Any]:
        """The scores of a batch; raises _Passing after the last try, _Lasting at once."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_Passing),
            stop=stop_after_attempt(self._http.retries + 1),
            wait=wait_exponential_jitter(multiplier=FIRST_PAUSE_SECONDS, max=LONGEST_PAUSE_SECONDS),
            reraise=True,
        )
        scores: list[Any] = await retrying(self._post, samples)
        return scores

    async def _post(self, samples: Sequence[dict[str, Any]]) -> list[Any]:
        body = json.dumps({"samples": samples}, default=str)
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=True)
        limit = aiohttp.ClientTimeout(total=self._http.timeout_seconds)
        try:
            async with self._session.post(
                self._http.url, data=body, headers=headers, timeout=limit, allow_redirects=False
            ) as response:
                if response.status != 200:
                    kind = _Passing if response.status == 429 or response.status >= 500 else _Lasting
                    raise kind(f"answered with status {response.status}")
                text = await response.read()
        except TimeoutError as e:
            raise _Passing(f"did not answer within {self._http.timeout_seconds:g} s") from e
        except aiohttp.ClientError as e:
            raise _Passing(f"cannot be reached ({_said(e)})") from e
        return _scores(text, len(samples))


def _scores(text: bytes, count: int) -> list[Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise _Lasting("did not answer in JSON") from e
    scores = document.get("scores") if isinstance(document, dict) else None
    if not isinstance(scores, list):
        raise _Lasting('answered without {"scores": […]}')
    if len(scores) != count:
        raise _Lasting(f"answered with {len(scores)} scores for {count} samples")
    return scores


def _sample(case: Case) -> dict[str, Any]:
    return {
        "prompt": case.prompt,
        "question": case.question,
        "response": case.response,
        "answer": case.answer,
        "record": dict(case.record),
        "truncated": case.truncated,
    }


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
