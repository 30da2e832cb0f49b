"""A session that is asked to drain, at every place of a step: what is finished is kept, and all else is drawn again."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simplerl_api import overrides, yaml12
from simplerl_api.progress import RunState
from simplerl_trainer import driver, local
from simplerl_trainer.batch import Batch
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.policy.protocol import Annotation, Update
from simplerl_trainer.progress import files
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.progress.trackers import Trackers
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.samples import Finish, Prompt, Sample, Score
from simplerl_trainer.session import Session

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"
STEPS = 4


class Scripted(Session):
    """A session whose second step asks for a drain at a place; batches are drawn in their real order."""

    place = ""
    saved_steps: list[int]
    abandoned_draws: list[int]

    def reaches(self, place: str, step: int) -> None:
        if (place, step) == (self.place, 2):
            self.drain.set()

    @property
    def ranks(self) -> Any:
        async def annotate(plan: Any, work: Any, step: int, *_: object) -> Annotation:
            self.step = step
            self.reaches("annotate", step)
            return Annotation({"kl": 0.1}, {})

        async def update(batch: int, epoch: int) -> Update:
            self.reaches("update", self.step)
            await asyncio.sleep(0)
            return Update({"policy_loss": 0.5, "actor_grad_norm": 1.0}, False)

        return SimpleNamespace(annotate=annotate, update=update, optimizer_steps=lambda n: [(b, 0) for b in range(n)])

    async def draw(self, step: int, start: Cursor) -> Batch:
        prompt = Prompt(0, "1 + 1", "2", (5, 6))
        scored = [
            Scored(Sample(i, prompt, (7, 8), Finish.STOP, step - 1, None), Score(float(i % 2), "equal", parts={}))
            for i in range(16)
        ]
        self.reaches("rollout", step)
        if self.drain.is_set() or (self.place and step > 2):
            try:
                await asyncio.sleep(60)
            finally:
                self.abandoned_draws.append(step)
        _, after = start.take(8)
        return Batch(step, scored, scored, after, self.turns.version)

    draw_surely = draw

    async def checkpoint(self, step: int) -> None:
        self.saved = step
        self.saved_steps.append(step)

    async def nothing(self, *_: object, **__: object) -> None:
        pass

    evaluate = export = _write_samples = nothing  # type: ignore[assignment]


async def drained(
    folder: Path, monkeypatch: pytest.MonkeyPatch, place: str, *settings: str
) -> tuple[int, Reporter, Scripted]:
    """Drives a run that is asked to drain at a place."""
    given = [
        f"training.steps={STEPS}", "rollout.promptsPerStep=8", "rollout.samplesPerPrompt=2",
        "training.trainBatchSize=8", "checkpoint.everySteps=100", *settings,
    ]  # fmt: skip
    run = local.prepare(overrides.apply(yaml12.load_file(TINY), given), folder / "run", own_ray=True)
    log = Log(folder / "run/driver.log", console=True)
    reporter, control = Reporter(run.submission_id, STEPS, log), Control(run.plan)
    fence: Any = SimpleNamespace(check=lambda: None)
    fleet: Any = SimpleNamespace(
        pool=SimpleNamespace(engines={0: None}, lost=0),
        engines=SimpleNamespace(desired=1),
        idle=lambda: [],
        ranks=SimpleNamespace(residence=SimpleNamespace(sleeps=False)),
        sync=lambda version: asyncio.sleep(0),
    )
    unused: Any = None
    made = Scripted(run, unused, fleet, unused, Cursor(1, 64), reporter, log, fence, (), control.drain)
    made.place, made.saved_steps, made.abandoned_draws = place, [], []
    made.trackers = Trackers([], log)

    @asynccontextmanager
    async def open_session(*_: object) -> Any:
        if place == "start":
            asyncio.get_running_loop().call_later(0.05, control.drain.set)
            await asyncio.sleep(60)
        yield made

    monkeypatch.setattr(driver, "open_session", open_session)
    code = await asyncio.wait_for(driver._attempt(run, reporter, control, log, None), 20)
    return code, reporter, made


PLACES = [
    ("start", [], 0, []),
    ("rollout", [], 1, [2]),
    ("annotate", [], 2, []),
    ("update", [], 2, []),
    ("update", ["rollout.overlap=OneStep", "training.deterministic=false"], 2, [3]),
]


@pytest.mark.parametrize(
    ("place", "settings", "finished", "abandoned"),
    PLACES,
    ids=["before it starts", "in a rollout", "in the annotation", "in an update", "in an update beside a rollout"],
)
async def test_a_drain_keeps_finished_steps_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    settings: list[str],
    finished: int,
    abandoned: list[int],
) -> None:
    code, reporter, made = await drained(tmp_path, monkeypatch, place, *settings)
    assert code == 0
    assert reporter.document().state is RunState.DRAINED
    assert [row["step"] for row in files.read_steps(tmp_path / "run")] == list(range(1, finished + 1))
    assert made.saved_steps == ([finished] if finished else [])
    assert made.abandoned_draws == abandoned
    assert made.cursor == Cursor(1, 64).take(8 * finished)[1]


async def test_a_run_that_is_not_asked_does_all_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, reporter, made = await drained(tmp_path, monkeypatch, "")
    assert (code, reporter.document().state, made.saved_steps) == (0, RunState.SUCCEEDED, [STEPS])
