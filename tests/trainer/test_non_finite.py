"""Gradients and metrics that are not finite: counted, named, never in a file's JSON, and the end of a run that makes
nothing else. The ranks' side (no weight changes in a skipped step) is in policy/test_ranks.py."""

import asyncio
import json
import math
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simplerl_api import overrides, yaml12
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import local
from simplerl_trainer.batch import Batch
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.policy.protocol import Annotation, Update
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.progress.trackers import Trackers
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.samples import Finish, Prompt, Sample, Score
from simplerl_trainer.session import Session
from simplerl_trainer.train import train

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"
NAN = math.nan


class Scripted(Session):
    """A session with everything that leaves a trace, on ranks that answer as they are told: for each optimizer step,
    whether it is skipped."""

    def script(self, skips: Sequence[bool]) -> None:
        self.script_of_updates = iter(skips)
        self.trackers = Trackers([], self.log)

    @property
    def ranks(self) -> Any:
        async def annotate(*_: object) -> Annotation:
            return Annotation({"kl": 0.1}, {})

        async def update(batch: int, epoch: int) -> Update:
            skipped = next(self.script_of_updates)
            norm = math.inf if skipped else 1.0
            return Update({"policy_loss": NAN if skipped else 0.5, "actor_grad_norm": norm}, skipped)

        return SimpleNamespace(annotate=annotate, update=update, optimizer_steps=lambda n: [(b, 0) for b in range(n)])

    @asynccontextmanager
    async def batches(self) -> Any:  # type: ignore[override]
        async def settle(_: object) -> None:
            pass

        yield SimpleNamespace(settle=settle)

    async def take(self, batches: Any, step: int) -> Batch:
        prompt = Prompt(0, "1 + 1", "2", (5, 6))
        scored = [
            Scored(Sample(i, prompt, (7, 8), Finish.STOP, step - 1, None), Score(float(i % 2), "equal", parts={}))
            for i in range(16)
        ]
        return Batch(step, scored, scored, self.cursor, step - 1)

    async def nothing(self, *_: object, **__: object) -> None:
        pass

    evaluate = checkpoint = export = _write_samples = nothing  # type: ignore[assignment]


def session(folder: Path, skips: Sequence[bool], steps: int) -> Scripted:
    settings = [
        f"training.steps={steps}", "rollout.promptsPerStep=8", "rollout.samplesPerPrompt=2",
        "training.trainBatchSize=8", "evaluation=null",
    ]  # fmt: skip
    run = local.prepare(overrides.apply(yaml12.load_file(TINY), settings), folder / "run", own_ray=True)
    log = Log(folder / "run/driver.log", console=True)
    fence = SimpleNamespace(check=lambda: None)
    fleet = SimpleNamespace(
        pool=SimpleNamespace(engines={0: None}, lost=0),
        engines=SimpleNamespace(desired=1),
        ranks=SimpleNamespace(residence=SimpleNamespace(sleeps=False)),
        sync=lambda version: asyncio.sleep(0),
        idle=list,
    )
    made = Scripted(run, None, fleet, None, Cursor(1, 16), Reporter(run.submission_id, steps, log), log, fence)  # type: ignore[arg-type]
    made.script(skips)
    return made


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "run/metrics.jsonl").read_text().splitlines()
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


async def test_skipped_updates_are_counted_and_what_is_not_finite_is_named(tmp_path: Path) -> None:
    made = session(tmp_path, [True, False, True, True, False, False], steps=3)
    await train(made)
    found = rows(tmp_path)
    assert [row["skipped_updates"] for row in found] == [1, 2, 0]
    assert [row.get("non_finite") for row in found] == [["actor_grad_norm", "policy_loss"]] * 2 + [None]
    assert "policy_loss" not in found[0]
    assert found[2]["policy_loss"] == 0.5
    document = made.reporter.document()
    assert document.step == 3
    assert document.non_finite == []
    said = [json.loads(line) for line in made.log.lines if "step done" in line]
    assert [line.get("non_finite") for line in said] == [["actor_grad_norm", "policy_loss"]] * 2 + [None]


@pytest.mark.parametrize(
    ("skips", "steps_done", "step"),
    [
        pytest.param([True, True, True], 1, 2, id="from the first on"),
        pytest.param([False, False, True, False, True, True, True], 3, 4, id="after others"),
    ],
)
async def test_three_skipped_updates_in_a_row_end_the_run(
    tmp_path: Path, skips: Sequence[bool], steps_done: int, step: int
) -> None:
    """Fault 15 (OpenRLHF#1120, verl#747): NaN goes on for ever, and the model answers with one token."""
    made = session(tmp_path, skips, steps=9)
    with pytest.raises(TrainerFailure) as ended:
        await train(made)
    assert ended.value.reason is FailureReason.NON_FINITE
    assert ended.value.message == (
        f"the gradients of 3 optimizer steps in a row are not finite, the last in step {step}: lower "
        "training.actor.learningRate or training.critic.learningRate"
    )
    assert [row["step"] for row in rows(tmp_path)] == list(range(1, steps_done + 1))
