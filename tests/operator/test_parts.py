"""Small parts of the operator: settings, logs, the driver's last document, evidence, addresses."""

import asyncio
import json
import logging
import time
from email.utils import formatdate

import aiohttp
import pytest
from aiohttp import web
from kubernetes.aio import client
from tests.operator import documents
from tests.operator.observations import CLUSTER, OOM_POD, UID, job, pod

from simplerl_api.job_defaults import JobDefaults
from simplerl_api.progress import EngineProgress, Progress, RunState
from simplerl_operator import head_address, logs, settings
from simplerl_operator.kinds import JOB
from simplerl_operator.kubernetes_api import KubernetesApi, proxy_for
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.progress_client import ProgressClient
from simplerl_operator.ray_jobs import final_document

IMAGE = {"SIMPLERL_TRAINER_IMAGE": "t:1"}


def test_settings_have_documented_defaults() -> None:
    given = settings.read(IMAGE)
    assert given == settings.Settings(trainer_image="t:1")
    assert settings.read({**IMAGE, "SIMPLERL_NAMESPACES": "a, b,"}).namespaces == ("a", "b")


PEERS = {"metricsFrom": [{"podSelector": {}}]}
NO_PEERS = "give a JSON object whose members dashboardFrom and metricsFrom are lists of peers"
WRONG = {
    "SIMPLERL_TRAINER_IMAGE": ("", "SIMPLERL_TRAINER_IMAGE is not set: give the image of jobs that name none"),
    "SIMPLERL_WORKERS": ("none", "SIMPLERL_WORKERS is 'none': give a whole number from 1"),
    "SIMPLERL_HTTP_PORT": ("0", "SIMPLERL_HTTP_PORT is '0': give a whole number from 1"),
    "SIMPLERL_LOG_LEVEL": ("loud", "SIMPLERL_LOG_LEVEL is 'loud': give one of DEBUG, INFO, WARNING, ERROR"),
    "SIMPLERL_FIGURES_SECONDS": ("nan", "SIMPLERL_FIGURES_SECONDS is 'nan': give a number of seconds above 0"),
    "SIMPLERL_NETWORK_POLICY": (
        '{"metricsFrom": [{}]}',
        f"""SIMPLERL_NETWORK_POLICY is '{{"metricsFrom": [{{}}]}}': {NO_PEERS}""",
    ),
    "SIMPLERL_RESYNC_SECONDS": ("x", "SIMPLERL_RESYNC_SECONDS is 'x': give a number of seconds"),
}


@pytest.mark.parametrize(("variable", "text", "message"), [(v, *rest) for v, rest in WRONG.items()], ids=WRONG)
def test_a_wrong_setting_is_named(variable: str, text: str, message: str) -> None:
    with pytest.raises(settings.InvalidSettings) as caught:
        settings.read({**IMAGE, variable: text})
    assert str(caught.value) == message


def test_every_setting_is_read_from_a_variable() -> None:
    environment = {
        "SIMPLERL_TRAINER_IMAGE": "t", "SIMPLERL_NAMESPACES": "a", "OPERATOR_NAMESPACE": "o", "SIMPLERL_HTTP_PORT": "9",
        "SIMPLERL_LOG_LEVEL": "debug", "SIMPLERL_WORKERS": "2", "SIMPLERL_HEAD_ADDRESS": "http://h",
        "SIMPLERL_FIGURES_SECONDS": "1", "SIMPLERL_RESYNC_SECONDS": "2",
        "SIMPLERL_JOB_DEFAULTS": '{"priorityClassName": "p"}', "SIMPLERL_LEASE": "l", "SIMPLERL_IDENTITY": "i",
        "SIMPLERL_NETWORK_POLICY": '{"metricsFrom": [{"podSelector": {}}]}',
    }  # fmt: skip
    assert settings.read(environment) == settings.Settings(
        trainer_image="t", namespaces=("a",), operator_namespace="o", http_port=9, log_level="DEBUG", workers=2,
        head_address="http://h", figures_seconds=1.0, resync_seconds=2.0, lease="l", identity="i",
        network_policy=PEERS, job_defaults=JobDefaults(priority_class_name="p"),
    )  # fmt: skip


def test_a_log_line_is_one_json_object_with_keys_for_what_varies() -> None:
    record = logging.makeLogRecord(
        {"msg": "two\nlines", "levelno": 20, "levelname": "INFO", "name": "x", "job": "tiny"}
    )
    line = logs.JsonLines().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert {k: told[k] for k in ("level", "logger", "message", "job")} == {
        "level": "info", "logger": "x", "message": "two\nlines", "job": "tiny"
    }  # fmt: skip


LAST = documents.progress(CLUSTER, state="Succeeded")
LINES = [
    ("the last document", json.dumps({"event": "final", "progress": LAST}), True),
    ("with keys around it", json.dumps({"time": "t", "event": "final", "level": "info", "progress": LAST}), True),
    ("another event", json.dumps({"event": "step", "progress": LAST}), False),
    ("no JSON", '"final"', False),
    ("a document that is not one", json.dumps({"event": "final", "progress": {"state": "Dreaming"}}), False),
    ("a text that speaks of it", 'the "event": "final" comes last', False),
]


@pytest.mark.parametrize(("line", "found"), [case[1:] for case in LINES], ids=[case[0] for case in LINES])
def test_a_line_of_the_drivers_log_holds(line: str, found: bool) -> None:
    assert (final_document(line) is not None) is found


def test_evidence_is_kept_until_its_attempt_is_over() -> None:
    evidence, tiny = Evidence(), job()
    assert not evidence.note(tiny.key, pod("worker", 1), gone=False)
    assert evidence.note(tiny.key, OOM_POD, gone=False)
    assert evidence.note(tiny.key, pod("worker", 1, phase="Running", terminations=()), gone=True)
    assert [p.terminations for p in evidence.lost(tiny, set())] == [OOM_POD.terminations]
    assert evidence.lost(tiny, {OOM_POD.uid}) == ()
    evidence.forget(tiny.key)
    assert evidence.lost(tiny, set()) == ()


def test_evidence_of_another_job_of_the_same_name_does_not_count() -> None:
    evidence, tiny = Evidence(), job()
    evidence.note(tiny.key, pod("head", job_uid="another", phase="Failed"), gone=True)
    evidence.note(tiny.key, pod("head", uid="older", attempt=0, phase="Failed"), gone=True)
    assert evidence.lost(tiny, set()) == ()


ADDRESSES = [("10.0.0.1", "http://10.0.0.1:8265"), ("fd00::1", "http://[fd00::1]:8265")]


@pytest.mark.parametrize(("ip", "url"), ADDRESSES, ids=["IPv4", "IPv6"])
def test_a_head_is_reached_at(ip: str, url: str) -> None:
    assert head_address.dashboard(job(), pod("head", address=ip), None) == url


def test_a_stand_in_takes_the_place_of_all_heads() -> None:
    url = head_address.progress(job(), pod("head"), "http://h/{namespace}/{cluster}/")
    assert url == f"http://h/team-a/{CLUSTER}"
    assert UID.startswith("0a1b2c3d")


async def test_what_a_driver_last_said_outlives_its_head() -> None:
    said = Progress(
        submission_id="tiny-1a2b3-1", sequence=1, state=RunState.TRAINING, log=["it starts"], last_progress=1
    )
    app = web.Application()
    app.router.add_get("/progress", lambda _: _answer(said))
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    heard = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        client = ProgressClient(session, lambda _: heard.set(), time.time)
        client.follow(("default", "tiny"), f"http://127.0.0.1:{port}", "tiny-1a2b3-1", "token")
        await asyncio.wait_for(heard.wait(), 20)
        await runner.cleanup()
        last = client.last(("default", "tiny"), "tiny-1a2b3-1")
        assert last is not None
        assert last.log == ["it starts"]
        assert client.last(("default", "tiny"), "tiny-1a2b3-2") is None
        await client.close()
        assert client.last(("default", "tiny"), "tiny-1a2b3-1") is None


DRIVERS: list[tuple[str, float, str | None, float]] = [
    ("right", 0.0, None, 700),
    ("ten minutes ahead", 600.0, None, 700),
    ("ten minutes behind", -600.0, None, 700),
    ("a day behind", -86400.0, None, 700),
    ("not told", 0.0, "soon", 1000),  # then it is not known since when it stands
    ("of before the last movement", 0.0, formatdate(500), 1000),
]
"""A driver's clock: by how much it is off, what its answers are dated, and when it moved by ours."""


@pytest.mark.parametrize(("off", "date", "moved"), [d[1:] for d in DRIVERS], ids=[d[0] for d in DRIVERS])
async def test_when_a_driver_last_moved_is_told_by_our_clock(off: float, date: str | None, moved: float) -> None:
    now = [1000.0]
    said = Progress(submission_id="s", sequence=1, state=RunState.TRAINING, last_progress=700 + off)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(said.document(), headers={"Date": date or formatdate(now[0] + off, usegmt=True)})

    app = web.Application()
    app.router.add_get("/progress", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    heard = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        client = ProgressClient(session, lambda _: heard.set(), lambda: now[0])
        followed = client.follow(("default", "tiny"), f"http://127.0.0.1:{runner.addresses[0][1]}", "s", "token")

        async def hears(step: int, **changes: object) -> float:
            nonlocal said
            said = said.model_copy(update={"step": step, "sequence": said.sequence + 1, **changes})
            while followed.progress is None or followed.progress.step != step:
                heard.clear()
                await asyncio.wait_for(heard.wait(), 20)
            return followed.progress.last_progress

        assert await hears(1) == moved
        now[0] = 1060.0
        assert await hears(2) == moved  # it says something, and nothing moved
        assert await hears(3, last_progress=1059 + off) == 1060
        await client.close()
    await runner.cleanup()


async def test_another_number_of_engines_is_news_and_wishes_reach_the_driver() -> None:
    said = Progress(submission_id="s", sequence=1, state=RunState.TRAINING, last_progress=1)
    asked: list[tuple[str, object]] = []

    async def control(request: web.Request) -> web.Response:
        asked.append((request.headers["Authorization"], await request.json()))
        return web.Response(status=202)

    app = web.Application()
    app.router.add_get("/progress", lambda _: _answer(said))
    app.router.add_put("/control", control)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    heard = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        client = ProgressClient(session, lambda _: heard.set(), time.time)
        client.follow(("default", "tiny"), url, "s", "token")
        await asyncio.wait_for(heard.wait(), 20)
        heard.clear()
        said = said.model_copy(update={"sequence": 2, "engines": EngineProgress(current=4, desired=4)})
        await asyncio.wait_for(heard.wait(), 20)
        await client.control(url, "token", {"engines": 2})
        await client.control("http://127.0.0.1:9", "token", {"drain": True})  # nobody hears it, which is no fault
        await client.close()
    await runner.cleanup()
    assert asked == [("Bearer token", {"engines": 2})]


async def _answer(document: Progress) -> web.Response:
    return web.Response(text=document.model_dump_json(by_alias=True), content_type="application/json")


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://10.0.0.1:443", None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "https://10.0.0.1:443", "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.1"}, "https://10.0.0.1:443", None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".svc"}, "https://kubernetes.default.svc", None),
        ({"HTTP_PROXY": "http://proxy:3128"}, "https://10.0.0.1:443", None),
    ],
)
def test_the_proxy_of_the_api_server_is_the_environments(
    environment: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


async def test_requests_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(str(request.url))
        return web.json_response({"kind": "SimpleRLJob"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{runner.addresses[0][1]}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    configuration = client.Configuration()
    configuration.host = "http://api.example:80"
    api = KubernetesApi(configuration)
    try:
        assert await api.get(JOB, "a", "b") == {"kind": "SimpleRLJob"}
        assert asked == ["http://api.example/apis/simplerl.io/v1alpha1/namespaces/a/simplerljobs/b"]
    finally:
        await api.close()
        await runner.cleanup()
