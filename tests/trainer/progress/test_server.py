"""The driver's HTTP server."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from simplerl_api import overrides, validation, yaml12
from simplerl_api.failures import FailureReason
from simplerl_api.plan import Plan, make_plan
from simplerl_api.progress import EngineProgress, Progress, RunState, Versions
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.progress.server import Server

TOKEN = "a-token-of-the-job"
ROLLOUT = ["cluster.gpus=4", "rollout.enginesPerGpu=2"]  # 2 GPUs train, the others hold 4 engines
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def plan_of(settings: list[str]) -> Plan:
    tiny = yaml12.load_file(Path(__file__).parents[3] / "examples/tiny.yaml")
    return make_plan(validation.parse(overrides.apply(tiny, settings)).spec)


PLAN = plan_of(ROLLOUT)


@dataclass
class Site:
    reporter: Reporter
    server: Server
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.session.get(f"http://127.0.0.1:{self.server.port}{path}", headers=headers) as response:
            return response.status, await response.text()

    async def put(self, body: str | bytes, **headers: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.port}/control"
        async with self.session.put(url, data=body, headers=headers or BEARER) as response:
            return response.status, (await response.text()).strip()

    async def progress(self, query: str = "") -> Progress:
        status, text = await self.get(f"/progress{query}", **BEARER)
        assert status == 200
        return Progress.model_validate_json(text)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    log = Log(tmp_path / "driver.log", console=True)
    log.info("driver started")
    reporter = Reporter("tiny-1a2b3-1", 60, log)
    timeout = aiohttp.ClientTimeout(total=20)
    async with (
        Server(reporter, Control(PLAN), token=TOKEN, port=0, host="127.0.0.1") as server,
        aiohttp.ClientSession(timeout=timeout) as session,
    ):
        yield Site(reporter, server, session)


async def test_the_document_with_the_log_s_last_lines(site: Site) -> None:
    document = await site.progress()
    assert document.submission_id == "tiny-1a2b3-1"
    assert "driver started" in document.log[0]


async def test_a_long_poll_is_answered_by_the_next_change(site: Site) -> None:
    now = await site.progress()
    waiting = asyncio.create_task(site.progress(f"?since={now.sequence}&wait=15"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    site.reporter.training(0)
    assert (await asyncio.wait_for(waiting, 5)).state is RunState.TRAINING


async def test_a_long_poll_ends_after_its_wait(site: Site) -> None:
    now = await site.progress()
    assert await site.progress(f"?since={now.sequence}&wait=0.2") == now


@pytest.mark.parametrize("query", ["?since=x", "?wait=long", "?since=1.5"])
async def test_wrong_numbers_are_refused(site: Site, query: str) -> None:
    status, text = await site.get(f"/progress{query}", **BEARER)
    assert (status, text) == (400, "since is a whole number and wait a number of seconds\n")


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"any:{password}".encode()).decode()


ANSWERS = {
    "no token": (None, 401),
    "another token": ("Bearer another", 401),
    "the token alone": (TOKEN, 401),
    "the token": (f"Bearer {TOKEN}", 200),
    "a browser with the token as password": (basic(TOKEN), 200),
    "a browser with another password": (basic("another"), 401),
    "a broken header": ("Basic %%%", 401),
    "other scripts": ("Bearer tökén", 401),
}


@pytest.mark.parametrize("path", ["/progress", "/history", "/"])
@pytest.mark.parametrize(("header", "status"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_all_but_the_metrics_need_the_token(site: Site, path: str, header: str | None, status: int) -> None:
    found, text = await site.get(path, **({"Authorization": header} if header else {}))
    assert found == status
    assert status == 200 or text.startswith("give the job's token")


async def test_without_a_token_the_server_is_open(site: Site) -> None:
    async with Server(site.reporter, Control(PLAN), token=None, port=0, host="127.0.0.1") as server:
        assert (await Site(site.reporter, server, site.session).get("/progress"))[0] == 200


async def test_the_number_of_engines_is_asked_for_and_shown(site: Site) -> None:
    assert (await site.progress()).engines is None, "none has started"
    site.reporter.engines(4, 4)
    assert await site.put('{"engines": 2}') == (202, '{"engines": 2, "drain": false}')
    shown = (await site.progress()).engines
    assert shown == EngineProgress(current=4, desired=2), "engines go at the next sync"


WRONG = {
    "more than the plan": ('{"engines": 5}', 409, "engines is 5, more than the 4 of the plan: use 1 to 4"),
    "none": ('{"engines": 0}', 400, "engines is 0: it should be greater than or equal to 1"),
    "half an engine": ('{"engines": 1.5}', 400, "engines is 1.5: it should be a valid integer"),
    "a text": ('{"engines": "2"}', 400, "engines is '2': it should be a valid integer, without quotes"),
    "a misspelt name": ('{"engine": 2}', 400, 'unknown field "engine": did you mean engines?'),
    "nothing": ("{}", 400, 'the document: it asks for nothing: give engines or drain, for example {"engines": 2}'),
    "a list": ("[2]", 400, "the document is [2]: it should be an object"),
    "no JSON": ("engines: 2", 400, 'the body is not JSON: give an object such as {"engines": 2}'),
    "no UTF-8": (b"\xff\xfe", 400, 'the body is not JSON: give an object such as {"engines": 2}'),
}


@pytest.mark.parametrize(("body", "status", "sentence"), WRONG.values(), ids=WRONG.keys())
async def test_a_wrong_request_changes_nothing(site: Site, body: str | bytes, status: int, sentence: str) -> None:
    site.reporter.engines(4, 4)
    assert await site.put(body) == (status, sentence)
    assert (await site.progress()).engines == EngineProgress(current=4, desired=4)


async def test_control_needs_the_token(site: Site) -> None:
    assert (await site.put('{"engines": 2}', Authorization="Bearer another"))[0] == 401


async def test_colocated_engines_cannot_change(site: Site) -> None:
    control = Control(plan_of(["placement={colocated: {}}", "cluster.gpus=2"]))
    async with Server(site.reporter, control, token=TOKEN, port=0, host="127.0.0.1") as server:
        status, text = await Site(site.reporter, server, site.session).put('{"engines": 1}')
    assert status == 409
    assert text == (
        "engines cannot change while the job runs, since its placement is colocated and each engine shares its GPU "
        "with a training rank: use placement.disaggregated"
    )
    assert control.engines == 2


async def test_the_metrics_are_prometheus_text(site: Site) -> None:
    site.reporter.versions(Versions(trainer="1", vllm="2", deepspeed="3", ray="4", torch="5"))
    site.reporter.step(3, {"reward": 0.5, "kl": 0.01, "samples_per_second": 250.0}, {"rollout": 1.5}, 2.0)
    site.reporter.evaluation('held "out"', 0, 0.31)
    status, text = await site.get("/metrics")
    assert status == 200
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found.pop(("simplerl_last_progress_timestamp_seconds",)) > 0
    assert found == {
        ("simplerl_step",): 3,
        ("simplerl_planned_steps",): 60,
        ("simplerl_reward",): 0.5,
        ("simplerl_samples_per_second",): 250,
        ("simplerl_eta_seconds",): 114,
        ("simplerl_run_info", "Training", "tiny-1a2b3-1"): 1,
        ("simplerl_training_metric", "reward"): 0.5,
        ("simplerl_training_metric", "kl"): 0.01,
        ("simplerl_training_metric", "samples_per_second"): 250,
        ("simplerl_step_part_seconds", "rollout"): 1.5,
        ("simplerl_evaluation_accuracy", 'held "out"'): 0.31,
    }


async def test_the_curve_is_sent_in_a_bounded_number_of_points(site: Site) -> None:
    for step in range(1, 3001):
        site.reporter.step(step, {"reward": step / 1000}, {"rollout": 1.0}, 1.0)
    async with site.session.get(f"http://127.0.0.1:{site.server.port}/history", headers=BEARER) as response:
        history = await response.json()
    assert history["steps"][0] == {"step": 1, "reward": 0.001, "seconds": {"rollout": 1.0}}
    assert len(history["steps"]) == 500


async def test_the_page_needs_nothing_from_elsewhere(site: Site) -> None:
    _, text = await site.get("/", **BEARER)
    assert text.startswith("<!doctype html>")
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "src=" not in text


async def test_the_end_waits_until_the_last_document_was_read(site: Site) -> None:
    await site.progress()
    site.reporter.failed(FailureReason.TIMED_OUT, "engine 3 did not answer")
    reading = asyncio.create_task(site.server.final_read(10))
    await asyncio.sleep(0.1)
    assert not reading.done()
    assert (await site.progress()).finished
    assert await asyncio.wait_for(reading, 5)


async def test_the_end_does_not_wait_for_ever(site: Site) -> None:
    site.reporter.succeeded()
    assert not await site.server.final_read(0.1)


ELASTIC = ["cluster.gpus=6", "training.deterministic=false", "rollout.elastic={minEngines: 2, maxEngines: 4}"]


@pytest.mark.parametrize(
    ("engines", "status", "sentence"),
    [
        (1, 409, "engines is 1, less than rollout.elastic.minEngines: use 2 to 4"),
        (5, 409, "engines is 5, more than the 4 of the plan: use 2 to 4"),
        (2, 202, '{"engines": 2, "drain": false}'),
    ],
)
async def test_engines_that_come_and_go_have_bounds(site: Site, engines: int, status: int, sentence: str) -> None:
    async with Server(site.reporter, Control(plan_of(ELASTIC)), token=TOKEN, port=0, host="127.0.0.1") as server:
        assert await Site(site.reporter, server, site.session).put(f'{{"engines": {engines}}}') == (status, sentence)


def test_what_the_spec_says_of_engines_is_asked_for_from_the_start() -> None:
    plan = plan_of(ELASTIC)
    assert (Control(plan).engines, Control(plan).asked) == (4, False)
    assert (Control(plan, 3).engines, Control(plan, 3).asked) == (3, True)
