"""A service that scores: what it is asked, and what becomes of its faults."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.reference import SecretKeyRef
from simplerl_api.spec.rewards import HttpReward, Reward
from simplerl_trainer.rewards import http
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.score import Scorer, check
from simplerl_trainer.samples import Score

Answer = Callable[[dict[str, Any], int], Any]
"""From a request's document and its number: a document, a text, a status, or seconds to wait."""


@dataclass
class Judge:
    """A service under test, at `url`."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@asynccontextmanager
async def judge(answer: Answer) -> AsyncIterator[Judge]:
    seen = Judge("")

    async def handle(request: web.Request) -> web.StreamResponse:
        document = json.loads(await request.text())
        seen.asked.append(document)
        seen.headers.append(dict(request.headers))
        found = answer(document, len(seen.asked))
        if isinstance(found, float):
            await asyncio.sleep(found)
        if isinstance(found, int):
            return web.Response(status=found, text="secret words of the service")
        return web.Response(text=found if isinstance(found, str) else json.dumps(found))

    app = web.Application(client_max_size=2**30)
    app.router.add_post("/score", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    seen.url = f"http://127.0.0.1:{runner.addresses[0][1]}/score"
    try:
        yield seen
    finally:
        await runner.cleanup()


def lengths(document: dict[str, Any], number: int) -> Any:
    return {"scores": [len(s["response"]) for s in document["samples"]]}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(http, "LONGEST_PAUSE_SECONDS", 0.02)


def reward(url: str, **settings: Any) -> Reward:
    return Reward(name="service", http=HttpReward(url=url, **settings))


def cases(count: int) -> list[Case]:
    return [Case(response="x" * i, answer="7") for i in range(count)]


async def scored(url: str, count: int, **settings: Any) -> list[Score]:
    async with Scorer([reward(url, **settings)], None) as scorer:
        return await scorer.score_cases(cases(count))


async def test_samples_are_asked_in_batches_and_scores_come_in_their_order() -> None:
    async with judge(lengths) as service:
        found = await scored(service.url, 25, batch_size=10)
    assert [s.value for s in found] == list(range(25))
    assert sorted(len(d["samples"]) for d in service.asked) == [5, 10, 10]
    assert not any(s.failed for s in found)


async def test_a_sample_is_what_the_documentation_says() -> None:
    case = Case("so 7", "#### 7", "<user>3 + 4", "3 + 4", {"level": 2, "tags": {"a"}}, truncated=True)
    async with judge(lengths) as service, Scorer([reward(service.url)], None) as scorer:
        await scorer.score_cases([case])
    (sample,) = service.asked[0]["samples"]
    assert sample == {
        "prompt": "<user>3 + 4", "question": "3 + 4", "response": "so 7", "answer": "#### 7",
        "record": {"level": 2, "tags": "{'a'}"}, "truncated": True,
    }  # fmt: skip
    assert "Authorization" not in service.headers[0]


async def test_a_service_that_fails_for_a_while_is_asked_again() -> None:
    async with judge(lambda document, number: 503 if number < 3 else lengths(document, number)) as service:
        found = await scored(service.url, 4, retries=2)
    assert ([s.value for s in found], len(service.asked)) == ([0, 1, 2, 3], 3)


# (answer, the samples' faults, requests)
FAULTS: dict[str, tuple[Answer, str, int]] = {
    "status 500": (lambda d, n: 500, "answered with status 500", 3),
    "status 429": (lambda d, n: 429, "answered with status 429", 3),
    "status 404": (lambda d, n: 404, "answered with status 404", 1),
    "status 401": (lambda d, n: 401, "answered with status 401", 1),
    "a redirection": (lambda d, n: 302, "answered with status 302", 1),
    "no JSON": (lambda d, n: "<html>", "did not answer in JSON", 1),
    "lists without end": (lambda d, n: "[" * 100_000, "did not answer in JSON", 1),
    "a number of 5000 digits": (lambda d, n: f'{{"scores": [{"9" * 5000}]}}', "did not answer in JSON", 1),
    "another document": (lambda d, n: [1, 2, 3], 'answered without {"scores": […]}', 1),
    "scores that are no list": (lambda d, n: {"scores": 1}, 'answered without {"scores": […]}', 1),
    "too few scores": (lambda d, n: {"scores": [1, 2]}, "answered with 2 scores for 3 samples", 1),
    "too many scores": (lambda d, n: {"scores": [1] * 4}, "answered with 4 scores for 3 samples", 1),
    "no answer in time": (lambda d, n: 5.0, "did not answer within 0.3 s", 3),
}


@pytest.mark.parametrize(("answer", "why", "requests"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_is_a_counted_failure_of_its_batch(answer: Answer, why: str, requests: int) -> None:
    async with judge(answer) as service:
        found = await scored(service.url, 3, retries=2, timeout_seconds=0.3, failed=-1.0)
    assert [(s.value, s.failed) for s in found] == [(-1.0, ("service",))] * 3
    assert {s.why for s in found} == {f"{service.url} {why}"}
    assert len(service.asked) == requests


async def test_another_batch_is_scored_all_the_same() -> None:
    def second(document: dict[str, Any], number: int) -> Any:
        return 400 if any(s["response"] == "xxx" for s in document["samples"]) else lengths(document, number)

    async with judge(second) as service:
        found = await scored(service.url, 6, batch_size=2)
    assert [s.value for s in found] == [0, 1, 0, 0, 4, 5]
    assert [bool(s.failed) for s in found] == [False, False, True, True, False, False]


async def test_what_is_no_number_fails_its_own_sample_alone() -> None:
    text = '{"scores": [1, null, "2", true, NaN, Infinity, [1], 2.5]}'
    async with judge(lambda d, n: text) as service:
        found = await scored(service.url, 8)
    assert [s.value for s in found] == [1, 0, 0, 0, 0, 0, 0, 2.5]
    assert [s.why.removeprefix(f"{service.url} gave ") for s in found[1:7]] == [
        f"{shown}, which is no finite number" for shown in ("null", '"2"', "true", "NaN", "Infinity", "[1]")
    ]


async def test_a_number_that_sums_and_ranks_cannot_hold_fails_its_own_sample_alone() -> None:
    text = f'{{"scores": [1, 1{"0" * 400}, 1e308, -1e31, 1e30]}}'
    async with judge(lambda d, n: text) as service:
        found = await scored(service.url, 5)
    assert [s.value for s in found] == [1, 0, 0, 0, 1e30]
    assert {s.why for s in found[1:4]} == {f"{service.url} gave a number beyond 1e+30: scale it down"}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


async def test_nobody_there_is_a_counted_failure_during_a_run_and_a_sentence_before_it() -> None:
    url = f"http://127.0.0.1:{free_port()}/score"
    found = await scored(url, 2, retries=1)
    assert all(s.failed == ("service",) and s.why.startswith(f"{url} cannot be reached (") for s in found)
    with pytest.raises(TrainerFailure) as caught:
        await check([reward(url, retries=1)])
    assert caught.value.reason is FailureReason.INVALID_INPUT
    assert caught.value.message.startswith(f"rewards[0].http.url is {url}, which cannot be reached (")
    assert caught.value.message.endswith('when asked for {"samples": []}: start the service, or correct the url')


BEFORE: dict[str, tuple[Answer, str]] = {
    "another path": (lambda d, n: 404, "answered with status 404"),
    "a token that is wanted": (lambda d, n: 401, "answered with status 401"),
    "another service": (lambda d, n: "<html>", "did not answer in JSON"),
}


@pytest.mark.parametrize(("answer", "why"), BEFORE.values(), ids=BEFORE)
async def test_a_service_that_does_not_answer_as_documented_is_a_sentence_before_the_first_step(
    answer: Answer, why: str
) -> None:
    async with judge(answer) as service:
        with pytest.raises(TrainerFailure) as caught:
            await check([reward(service.url)])
    assert caught.value.message == (
        f'rewards[0].http.url is {service.url}, which {why} when asked for {{"samples": []}}: start the service, or '
        "correct the url"
    )


async def test_a_token_is_sent_and_told_to_nobody_else() -> None:
    rewards = [reward("http://127.0.0.1:1/", token_secret_ref=SecretKeyRef(name="judge", key="token"))]
    async with judge(lambda d, n: 403) as service:
        rewards.append(reward(service.url, token_secret_ref=SecretKeyRef(name="judge", key="token"), retries=0))
        with pytest.raises(TrainerFailure) as caught:
            await check(rewards[1:], {"SIMPLERL_REWARD_0_TOKEN": "hf-very-secret\n"})
    assert service.headers[0]["Authorization"] == "Bearer hf-very-secret"
    assert "hf-very-secret" not in caught.value.message
    assert "secret words" not in caught.value.message


async def test_a_token_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(TrainerFailure) as caught:
        await check(
            [reward("http://127.0.0.1:1/", token_secret_ref=SecretKeyRef(name="judge", key="token"))], {"A": "b"}
        )
    assert caught.value.message == (
        "rewards[0].http.tokenSecretRef is given, but the variable SIMPLERL_REWARD_0_TOKEN is empty: set it where "
        "Kubernetes does not"
    )


async def test_no_more_than_a_few_requests_are_under_way_at_once() -> None:
    now, most = 0, 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return web.json_response({"scores": [1.0]})

    app = web.Application()
    app.router.add_post("/score", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await (site := web.TCPSite(runner, "127.0.0.1", 0)).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/score"
        found = await scored(url, 40, batch_size=1)
    finally:
        await site.stop()
        await runner.cleanup()
    assert sum(s.value for s in found) == 40
    assert 1 < most <= http.MOST_REQUESTS
