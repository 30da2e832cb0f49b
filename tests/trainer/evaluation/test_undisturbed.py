"""Evaluations change nothing of the training beside them."""

import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.trainer import running

from simplerl_api import overrides, yaml12
from simplerl_trainer import local
from simplerl_trainer.checkpoints.fence import Fence
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.samples import Finish, Prompt, Sample, Score
from simplerl_trainer.session import Session


class Engines:
    """Stands in the pool's place."""

    def __init__(self) -> None:
        self.asked: list[Sequence[Request]] = []

    async def generate(self, requests: Sequence[Request]) -> AsyncIterator[Finished]:
        self.asked.append(list(requests))
        for r in requests:
            yield Finished(r.id, (r.id,), Finish.STOP, None, 1)


class Judges:
    """Stands in the scorer's place: the first `right` samples are right."""

    right = 0

    async def score(self, samples: Sequence[Sample]) -> Sequence[Score]:
        return [Score(0.0, "equal" if s.id < self.right else "different") for s in samples]


async def test_an_evaluation_leaves_its_results_and_moves_neither_cursor_nor_random_numbers(tmp_path: Path) -> None:
    changes = ["checkpoint={}", "evaluation.samples=1"]
    run = local.prepare(overrides.apply(yaml12.load_file(running.TINY), changes), tmp_path, own_ray=True)
    log = Log(tmp_path / "driver.log")
    reporter = Reporter(run.submission_id, run.spec.training.steps, log)
    fence = Fence(tmp_path, run.attempt)
    fence.claim()
    prompts = [Prompt(i, f"question {i}", "7", (1, 2)) for i in range(4)]
    inputs: Any = SimpleNamespace(
        evaluations={"held-out": prompts},
        unasked={"held-out": [Prompt(4, "too long", "7", (1,) * 99)]},
        texts=lambda samples: {s.id: "" for s in samples},
    )
    engines, judges = Engines(), Judges()

    async def exported(folder: str, notes: object) -> None:
        kept.append(folder)

    kept: list[str] = []
    fleet: Any = SimpleNamespace(pool=engines, ranks=SimpleNamespace(export=exported, load=None), engines=None)
    scorer: Any = judges
    session = Session(run, inputs, fleet, scorer, Cursor(1, 100), reporter, log, fence)
    await session.resume()
    before, state = session.cursor, random.getstate()
    for step, judges.right in ((0, 1), (20, 4), (40, 2)):
        await session.evaluate(step)
    assert session.cursor == before
    assert random.getstate() == state
    assert engines.asked[0] == engines.asked[1] == engines.asked[2], "the same questions and seeds at every step"
    (found,) = reporter.document().evaluations
    assert [(a.step, a.accuracy) for a in (found.first, found.best, found.last)] == [(0, 0.2), (20, 0.8), (40, 0.4)]
    rows = [json.loads(line) for line in (tmp_path / "evaluations.jsonl").read_text().split("\n")[:-1]]
    assert [(r["step"], r["samples"], r["right"], r["failed"]) for r in rows] == [
        (0, 5, 1, 1),
        (20, 5, 4, 1),
        (40, 5, 2, 1),
    ]


@pytest.mark.long
def test_a_run_with_evaluations_trains_as_one_without(tmp_path: Path) -> None:
    settings = [
        "training.steps=2", "training.deterministic=true", "placement.disaggregated.trainingGpus=1", "cluster.gpus=2",
        "rollout.promptsPerStep=16", "evaluation.datasets[0].reasoningGym.size=16",
    ]  # fmt: skip
    files = {}
    for name, more in {"often": "evaluation.everySteps=1", "seldom": "evaluation.everySteps=1000"}.items():
        ended = running.train(tmp_path / name, [*settings, more])
        assert ended.code == 0, ended.text
        files[name] = [(tmp_path / name / f"samples/step-{step:06}.jsonl").read_bytes() for step in (1, 2)]
    assert files["often"] == files["seldom"]
    assert len(running.events(tmp_path / "often", "evaluated")) == 3
    assert len(running.events(tmp_path / "seldom", "evaluated")) == 2
