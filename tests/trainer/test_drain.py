"""Draining: what is abandoned, what is kept, and how the pods' hook asks for it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from simplerl_api.progress import RunState
from simplerl_api.validation import InvalidJob
from simplerl_trainer import prestop
from simplerl_trainer.drain import Drained, unless
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.progress.server import Server


async def test_work_that_ends_first_is_kept() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 3

    assert await unless(asyncio.Event(), work) == 3


async def test_work_at_hand_is_cancelled_and_has_ended_when_the_drain_is_heard() -> None:
    asked, ended = asyncio.Event(), []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    asyncio.get_running_loop().call_later(0.05, asked.set)
    with pytest.raises(Drained):
        await unless(asked, work)
    assert ended == [True]


async def test_nothing_is_begun_after_a_drain() -> None:
    asked = asyncio.Event()
    asked.set()
    with pytest.raises(Drained):
        await unless(asked, lambda: pytest.fail("it was begun"))


async def test_a_failure_of_the_work_is_its_own() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await unless(asyncio.Event(), work)


def plan() -> Any:
    return SimpleNamespace(engines=2)


async def test_control_takes_a_drain_up_and_refuses_what_asks_for_nothing() -> None:
    control = Control(plan())
    with pytest.raises(InvalidJob, match="it asks for nothing: give engines or drain"):
        control.apply({"drain": False})
    assert not control.drain.is_set()
    control.apply({"drain": True})
    assert control.drain.is_set()


async def test_the_pods_hook_waits_until_the_driver_has_drained(tmp_path: Any) -> None:
    reporter = Reporter("tiny-1a2b3-1", 9, Log(tmp_path / "log"))
    control = Control(plan())

    async def driver() -> None:
        await control.drain.wait()
        await asyncio.sleep(0.2)
        reporter.checkpoint(4, "/x")
        reporter.drained()

    async with Server(reporter, control, token="secret", port=0, host="127.0.0.1") as server:
        base = f"http://127.0.0.1:{server.port}"
        refused = await asyncio.to_thread(prestop.drain, base, "wrong", 5.0)
        assert refused == f"the driver at {base} does not answer: HTTP Error 401: Unauthorized"
        late = await asyncio.to_thread(prestop.drain, base, "secret", 0.3)
        assert late == f"the driver at {base} has not drained within 0 s"
        running = asyncio.create_task(driver())
        assert await asyncio.to_thread(prestop.drain, base, "secret", 20.0) == RunState.DRAINED
        await running
        assert reporter.document().finished
    gone = await asyncio.to_thread(prestop.drain, base, "secret", 20.0)
    assert gone.startswith(f"the driver at {base} does not answer: ")
