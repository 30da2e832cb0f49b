"""Engines that come back: which, how often, and how long a run without any waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.trainer.progress.test_server import plan_of

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import engines
from simplerl_trainer.engines import MOST_TRIES, Engines, in_order, spread
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log

PLAN = plan_of(["cluster.gpus=4", "rollout.enginesPerGpu=2"])  # engines 0 and 1 in one slot, 2 and 3 in another


@dataclass
class Starting:
    """Starts engines; may fail so often first, or never come to an end."""

    fails: int = 0
    hangs: bool = False
    asked: list[int] = field(default_factory=list)

    async def start(self, engine: int) -> str:
        self.asked.append(engine)
        await asyncio.sleep(60 if self.hangs else 0)
        if len(self.asked) <= self.fails:
            raise TrainerFailure(FailureReason.ROLLOUT_OUT_OF_MEMORY, "the engine ran out of memory")
        return f"actor of {engine}"


@pytest.fixture
def control() -> Control:
    return Control(PLAN)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "driver.log", console=True)


async def settled(of: Engines) -> dict[int, str]:
    await asyncio.sleep(0.01)
    return dict(of.ready())


async def test_what_is_missing_is_started_once_and_handed_over_once(control: Control, log: Log) -> None:
    starting = Starting()
    of = Engines(starting.start, [0, 1, 2, 3], control, log, replaces=True)
    of.begin([0, 3])
    of.begin([0, 3])
    assert dict(of.ready()) == {}, "nobody waits for it"
    assert await settled(of) == {1: "actor of 1", 2: "actor of 2"}
    assert starting.asked == [1, 2]
    assert await settled(of) == {}


async def test_an_engine_without_a_node_waits_for_one_and_has_all_its_tries_then(control: Control, log: Log) -> None:
    starting, nodes = Starting(fails=1000), {0}
    of = Engines(starting.start, [0, 1], control, log, replaces=True, with_nodes=lambda: nodes)
    for _ in range(MOST_TRIES):
        of.begin([])
        await settled(of)
    assert starting.asked == [0] * MOST_TRIES
    nodes.clear()
    of.begin([])
    assert of.hopeful, "another node may come"
    nodes |= {0, 1}
    starting.fails = 0
    of.begin([])
    assert await settled(of) == {0: "actor of 0", 1: "actor of 1"}


async def test_engines_with_nodes_are_wanted_first(control: Control, log: Log) -> None:
    of = Engines(Starting().start, [0, 1, 2, 3], control, log, replaces=True, with_nodes=lambda: {2, 3})
    assert list(of.wanted) == [2, 3, 0, 1]
    assert of.want(2)
    assert list(of.wanted) == [2, 3], "those that would have to wait for a node go first"


async def test_a_start_that_is_not_wanted_any_more_ends(control: Control, log: Log) -> None:
    of = Engines(Starting(hangs=True).start, [0, 1, 2, 3], control, log, replaces=True)
    of.begin([0])
    starts = dict(of._starting)
    assert of.want(2)
    of.abandon_all_but(of.wanted)
    await asyncio.sleep(0.01)
    assert {engine: task.cancelled() for engine, task in starts.items()} == {1: False, 2: True, 3: True}
    assert await settled(of) == {}
    await of.close()


async def test_what_somebody_said_is_wanted(control: Control, log: Log) -> None:
    of = Engines(Starting().start, [0, 1, 2, 3], control, log, replaces=True)
    control.apply({"engines": 3})
    assert not of.want(2)
    assert (of.desired, list(of.wanted)) == (3, [0, 1, 2])


async def test_tries_are_bounded_and_begin_anew_for_an_engine_that_served(control: Control, log: Log) -> None:
    starting = Starting(fails=1000)
    of = Engines(starting.start, [0], control, log, replaces=True)
    for _ in range(MOST_TRIES + 3):
        of.begin([])
        assert await settled(of) == {}
    assert starting.asked == [0] * MOST_TRIES
    assert not of.hopeful
    assert of.why == "engine 0 did not start again (the engine ran out of memory)"
    of.serves([0])
    assert of.hopeful


async def test_the_first_that_comes_back_is_waited_for(
    control: Control, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "PAUSE_SECONDS", 0.01)
    starting = Starting(fails=2)
    of = Engines(starting.start, [0, 1], control, log, replaces=True)
    assert set(await of.wait(5.0)) <= {0, 1}
    assert len(starting.asked) >= 3


@pytest.mark.parametrize(
    ("starting", "seconds"),
    [
        pytest.param(Starting(hangs=True), 0.2, id="that never ends"),
        pytest.param(Starting(fails=1000), 5.0, id="that fails every time"),
    ],
)
async def test_the_wait_for_a_start_has_an_end(
    control: Control, log: Log, monkeypatch: pytest.MonkeyPatch, starting: Starting, seconds: float
) -> None:
    monkeypatch.setattr(engines, "PAUSE_SECONDS", 0.01)
    of = Engines(starting.start, [0], control, log, replaces=True)
    assert await asyncio.wait_for(of.wait(seconds), 3.0) == {}
    await of.close()


async def test_without_replacement_nothing_is_started(control: Control, log: Log) -> None:
    starting = Starting()
    of = Engines(starting.start, [0, 1], control, log, replaces=False)
    of.begin([])
    assert not of.hopeful
    assert await of.wait(5.0) == {}
    assert starting.asked == []


@pytest.mark.parametrize(("asked", "wanted"), [(4, [0, 2, 1, 3]), (3, [0, 2, 1]), (2, [0, 2]), (1, [0])])
def test_fewer_engines_stay_spread_over_the_slots(
    control: Control, log: Log, asked: int, wanted: Sequence[int]
) -> None:
    of = Engines(Starting().start, spread(PLAN), control, log, replaces=True)
    control.apply({"engines": asked})
    assert (list(of.wanted), of.desired) == (wanted, asked)


def test_engines_that_go_with_their_nodes_leave_whole_nodes(control: Control, log: Log) -> None:
    settings = ["cluster.gpus=4", "training.deterministic=false", "rollout.elastic={minEngines: 1, maxEngines: 4}"]
    assert list(in_order(plan_of(settings))) == [0, 1, 2, 3]
    assert list(in_order(PLAN)) == list(spread(PLAN)) == [0, 2, 1, 3]
