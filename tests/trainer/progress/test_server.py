"""The driver's HTTP server."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from simplerl_api.failures import FailureReason
from simplerl_api.progress import Progress, RunState, Versions
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.progress.server import Server

TOKEN = "a-token-of-the-job"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Site:
    reporter: Reporter
    server: Server
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.session.get(f"http://127.0.0.1:{self.server.port}{path}", headers=headers) as response:
            return response.status, await response.text()

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
        Server(reporter, token=TOKEN, port=0, host="127.0.0.1") as server,
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
    async with Server(site.reporter, token=None, port=0, host="127.0.0.1") as server:
        assert (await Site(site.reporter, server, site.session).get("/progress"))[0] == 200


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
