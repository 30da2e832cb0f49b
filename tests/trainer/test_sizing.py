"""How many engines are wanted: enough to draw a batch while another one trains."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api import overrides, yaml12
from simplerl_trainer import local
from simplerl_trainer.clock import Clock
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.sizing import STEPS, Pace, Sizing, wanted

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"


def steps(engines: int, *seconds: tuple[float, float]) -> Sequence[Pace]:
    return [Pace(engines, drawing, training) for drawing, training in seconds]


# nodes of 4 engines; at least 4, at most 24
@pytest.mark.parametrize(
    ("paces", "now", "then"),
    [
        pytest.param(steps(16, (10, 40), (10, 40)), 16, 16, id="two steps say nothing yet"),
        pytest.param(steps(16, (10, 40), (10, 40), (10, 40)), 16, 8, id="5 would do, on two nodes"),
        pytest.param(steps(16, (10, 40), (10, 14), (10, 40)), 16, 16, id="one step could not spare a node"),
        pytest.param(steps(16, (10, 40), (10, 20), (10, 40)), 16, 12, id="as many as the one that wants most"),
        pytest.param(steps(16, (10, 11), (10, 11), (10, 11)), 16, 16, id="in balance"),
        pytest.param(steps(8, (20, 10), (20, 10), (20, 10)), 8, 20, id="18 are needed, on five nodes"),
        pytest.param(steps(8, (20, 10), (12, 10), (20, 10)), 8, 12, id="as many as the one that wants least"),
        pytest.param(steps(8, (90, 10), (90, 10), (90, 10)), 8, 24, id="no more than there may be"),
        pytest.param(steps(8, (1, 90), (1, 90), (1, 90)), 8, 4, id="no fewer than there must be"),
        pytest.param(steps(4, (20, 10), (20, 10), (20, 10)), 12, 12, id="those that are wanted have not come yet"),
    ],
)
def test_what_steps_want(paces: Sequence[Pace], now: int, then: int) -> None:
    assert wanted(paces, now, 4, 24, 4) == then


@given(
    work=st.floats(1, 1e4), training=st.floats(1, 1e3), each=st.sampled_from([1, 2, 4, 8]), nodes=st.integers(1, 16),
    start=st.integers(1, 128),
)  # fmt: skip
def test_the_number_comes_to_rest_where_no_node_can_be_spared(
    work: float, training: float, each: int, nodes: int, start: int
) -> None:
    most = nodes * each
    now = min(start, most)
    for _ in range(3):
        before, now = now, wanted([Pace(now, work / now, training)] * STEPS, now, 1, most, each)
    assert now == before
    drawing = work / now
    assert drawing <= training or now == most, "the ranks do not wait for engines that could come"


class Fleet:
    """So many engines that live, and a control that says how many are wanted."""

    def __init__(self, control: Control, living: int) -> None:
        self.pool: Any = SimpleNamespace(engines=dict.fromkeys(range(living)))
        self.engines: Any = SimpleNamespace(desired=control.engines, want=self.want)
        self.asked: list[int] = []

    def want(self, engines: int) -> bool:
        self.asked.append(engines)
        return True


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        pytest.param(["rollout.overlap=OneStep", "rollout.elastic={minEngines: 1, maxEngines: 4}"], [2], id="elastic"),
        pytest.param(["rollout.elastic={minEngines: 1, maxEngines: 4}"], [], id="without overlap all are wanted"),
        pytest.param(["rollout.overlap=OneStep"], [], id="engines that stay"),
    ],
)
def test_steps_ask_for_engines(tmp_path: Path, settings: Sequence[str], asked: Sequence[int]) -> None:
    given = ["cluster.gpus=6", "training.deterministic=false", *settings]
    document = overrides.apply(yaml12.load_file(TINY), given)
    run = local.prepare(document, tmp_path / "run", own_ray=False)
    run = run.model_copy(update={"plan": local.make_plan(run.spec)})  # as in pods
    fleet: Any = Fleet(Control(run.plan), run.plan.engines)
    sizing, clock = Sizing(run, Log(tmp_path / "driver.log")), Clock()
    clock.seconds = {"annotate": 4.0, "update": 6.0, "rollout": 1.0}
    for _ in range(STEPS):
        sizing.trained(fleet, clock)
    assert fleet.asked == [], "nothing was drawn beside them"
    for _ in range(STEPS):
        sizing.drew(4.0)
        sizing.trained(fleet, clock)
    assert fleet.asked == asked
