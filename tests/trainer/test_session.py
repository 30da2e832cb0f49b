"""What a session saves, keeps and takes up, with ranks that write small files."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from simplerl_api import overrides, yaml12
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import local
from simplerl_trainer.checkpoints import manifest, swap
from simplerl_trainer.checkpoints.fence import Fence
from simplerl_trainer.checkpoints.manifest import File
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.policy.protocol import Annotation
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.session import Session

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"


class Ranks:
    """Writes what the ranks of a run would, and remembers what was asked."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.fault: TrainerFailure | None = None

    async def save(self, folder: str) -> dict[str, File]:
        path = Path(folder) / "ranks.json"
        path.write_text("{}")
        if self.fault is not None:
            raise self.fault
        return {path.name: manifest.settled(path)}

    async def load(self, folder: str) -> None:
        self.loaded.append(Path(folder).name)

    async def export(self, folder: str, notes: Mapping[str, str]) -> None:
        partial = swap.partial_of(Path(folder))
        partial.mkdir()
        for name, text in notes.items():
            (partial / name).write_text(text)
        swap.replace(Path(folder))


class Fleet:
    """Ranks alone."""

    def __init__(self) -> None:
        self.ranks = Ranks()


def attempt(output: Path, *settings: str) -> Session:
    """The session of the next attempt in a folder."""
    run = local.prepare(overrides.apply(yaml12.load_file(TINY), settings), output, own_ray=True)
    log = Log(output / "driver.log")
    reporter = Reporter(run.submission_id, run.spec.training.steps, log)
    fence = Fence(output, run.attempt)
    fence.claim()
    unused: Any = None
    fleet: Any = Fleet()
    session = Session(run, unused, fleet, unused, Cursor(1, 100), reporter, log, fence)
    asyncio.run(session.resume())
    return session


def save(session: Session, *steps: int) -> None:
    for step in steps:
        asyncio.run(session.checkpoint(step))


def names(session: Session) -> list[str]:
    return sorted(p.name for p in (session.output / "checkpoints").iterdir())


def said(session: Session, message: str) -> list[dict[str, Any]]:
    lines = (session.output / "driver.log").read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line))["message"] == message]


def test_the_next_attempt_goes_on_where_the_newest_checkpoint_stands(tmp_path: Path) -> None:
    first = attempt(tmp_path, "checkpoint.keep=2")
    assert (first.steps_done, first.fleet.ranks.loaded) == (0, [])
    _, first.cursor = first.cursor.take(30)
    first.reporter.evaluation("held-out", 0, 0.25)
    save(first, 1, 2, 3)
    assert names(first) == ["step-000002", "step-000003"]

    second = attempt(tmp_path, "checkpoint.keep=2")
    assert second.steps_done == 3
    assert second.fleet.ranks.loaded == ["step-000003"]
    assert second.cursor == first.cursor
    assert [e.first.accuracy for e in second.reporter.document().evaluations] == [0.25]


def test_a_run_may_begin_where_another_one_stands(tmp_path: Path) -> None:
    first = attempt(tmp_path / "one")
    _, first.cursor = first.cursor.take(30)
    save(first, 4)
    second = attempt(tmp_path / "two", f"checkpoint.resumeFrom={tmp_path}/one")
    assert (second.steps_done, second.saved, second.fleet.ranks.loaded) == (4, 0, ["step-000004"])
    assert second.cursor == first.cursor
    save(second, 5)
    third = attempt(tmp_path / "two", f"checkpoint.resumeFrom={tmp_path}/one")
    assert (third.steps_done, third.saved) == (5, 5)


def test_another_run_that_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    attempt(tmp_path / "one")
    with pytest.raises(TrainerFailure) as refused:
        attempt(tmp_path / "two", f"checkpoint.resumeFrom={tmp_path}/on")
    assert refused.value.reason is FailureReason.INVALID_INPUT
    assert refused.value.message == (
        f"checkpoint.resumeFrom is {tmp_path}/on, which has no checkpoint to go on from: there is no folder "
        f"{tmp_path}/on/checkpoints; {tmp_path} holds one, two"
    )


def test_a_drained_run_saves_its_last_finished_step_once(tmp_path: Path) -> None:
    session = attempt(tmp_path)
    session.finished = 3
    asyncio.run(session.checkpoint_finished())
    asyncio.run(session.checkpoint_finished())
    assert names(session) == ["step-000003"]
    assert len(said(session, "checkpoint complete")) == 1


def test_an_evaluation_that_a_drain_cut_short_is_made_by_the_next_attempt(tmp_path: Path) -> None:
    settings = ["evaluation.everySteps=2"]
    first = attempt(tmp_path, *settings)
    assert first.evaluation_missing()
    first.reporter.evaluation("held-out", 0, 0.25)
    assert not first.evaluation_missing()
    save(first, 2)
    second = attempt(tmp_path, *settings)
    assert second.evaluation_missing()
    second.reporter.evaluation("held-out", 2, 0.25)
    assert not second.evaluation_missing()
    save(second, 3)
    assert not attempt(tmp_path, *settings).evaluation_missing()


def test_the_kl_coefficient_follows_its_target_also_after_a_resume(tmp_path: Path) -> None:
    settings = ["algorithm.kl={coefficient: 0.5, adaptive: {target: 0.02, horizon: 1000}}"]
    first = attempt(tmp_path, *settings)
    assert first.kl_coefficient == 0.5
    advantages = dict.fromkeys(range(100), 0.0)
    first.adapt_kl(Annotation({"kl": 0.021}, advantages))
    assert first.kl_coefficient == pytest.approx(0.5 * 1.005)
    save(first, 1)
    second = attempt(tmp_path, *settings)
    assert second.kl_coefficient == first.kl_coefficient
    second.adapt_kl(Annotation({"kl": 0.019}, advantages))
    assert second.kl_coefficient == pytest.approx(0.5 * 1.005 * 0.995)


def test_the_kl_coefficient_stays_where_nothing_adapts_it(tmp_path: Path) -> None:
    session = attempt(tmp_path)
    session.adapt_kl(Annotation({"kl": 9.0}, {0: 0.0}))
    assert session.kl_coefficient == 0.01


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(tmp_path: Path) -> None:
    # fault 34: prime-rl#2992, OpenRLHF#1208
    save(attempt(tmp_path), 1, 2)
    damaged = tmp_path / "checkpoints/step-000002/ranks.json"
    damaged.write_text("{ }")
    second = attempt(tmp_path)
    assert (second.steps_done, second.fleet.ranks.loaded) == (1, ["step-000001"])
    (warning,) = said(second, "checkpoint skipped")
    assert warning["level"] == "warning"
    assert warning["checkpoint"] == "step-000002"
    assert warning["why"] == f"{damaged} has 3 bytes instead of 2"
    assert not said(second, "the run begins anew")


def test_a_run_of_which_nothing_is_left_begins_anew_and_says_so(tmp_path: Path) -> None:
    save(attempt(tmp_path), 1)
    (tmp_path / "checkpoints/step-000001/manifest.json").unlink()
    second = attempt(tmp_path)
    assert second.steps_done == 0
    assert said(second, "the run begins anew")


def test_a_checkpoint_that_fails_gives_its_room_back_and_keeps_the_last_one(tmp_path: Path) -> None:
    # fault 34: verl#4873 (max_ckpt_to_keep=1 loses data)
    session = attempt(tmp_path, "checkpoint.keep=1")
    save(session, 1)
    session.fleet.ranks.fault = TrainerFailure(FailureReason.CHECKPOINT_FAILED, "rank 1 could not write: no room")
    with pytest.raises(TrainerFailure, match="rank 1 could not write: no room"):
        save(session, 2)
    assert names(session) == ["step-000001"]
    assert attempt(tmp_path, "checkpoint.keep=1").steps_done == 1


def test_an_attempt_that_is_superseded_while_its_ranks_write_completes_nothing(tmp_path: Path) -> None:
    older = attempt(tmp_path)
    save(older, 1)
    newer = attempt(tmp_path)
    with pytest.raises(TrainerFailure) as caught:
        save(older, 2)
    assert caught.value.reason is FailureReason.SUPERSEDED
    assert names(older) == ["step-000001"]
    save(newer, 2)
    assert names(newer) == ["step-000001", "step-000002"]
    with pytest.raises(TrainerFailure, match="attempt 2 writes into"):
        asyncio.run(older.export())


def best(session: Session) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((session.output / "best-model/best.json").read_text(encoding="utf-8"))
    return found


def test_the_best_model_is_replaced_by_better_ones_only_also_after_a_resume(tmp_path: Path) -> None:
    session = attempt(tmp_path)
    for step, accuracy, step_of_best in ((0, 0.3, 0), (2, 0.5, 2), (4, 0.4, 2)):
        asyncio.run(session.keep_best(step, {"held-out": accuracy}))
        assert best(session)["step"] == step_of_best
    resumed = attempt(tmp_path)
    asyncio.run(resumed.keep_best(6, {"held-out": 0.5}))
    assert best(resumed) == {"step": 2, "dataset": "held-out", "accuracy": 0.5}
    asyncio.run(resumed.keep_best(8, {"held-out": 0.6}))
    assert best(resumed) == {"step": 8, "dataset": "held-out", "accuracy": 0.6}
    assert sorted(p.name for p in tmp_path.glob("best-model*")) == ["best-model"]


def test_the_best_of_the_named_data_set_counts(tmp_path: Path) -> None:
    second = "evaluation.datasets=[{name: a, file: /a.jsonl}, {name: b, file: /b.jsonl}]"
    session = attempt(tmp_path, second, "checkpoint.best=b")
    asyncio.run(session.keep_best(2, {"a": 0.9, "b": 0.1}))
    asyncio.run(session.keep_best(4, {"a": 0.1, "b": 0.2}))
    assert best(session) == {"step": 4, "dataset": "b", "accuracy": 0.2}


def test_a_best_model_that_was_being_replaced_when_its_writer_was_killed_is_put_back(tmp_path: Path) -> None:
    session = attempt(tmp_path)
    asyncio.run(session.keep_best(2, {"held-out": 0.5}))
    (tmp_path / "best-model").rename(tmp_path / "best-model.old")
    asyncio.run(attempt(tmp_path).keep_best(4, {"held-out": 0.4}))
    assert best(session) == {"step": 2, "dataset": "held-out", "accuracy": 0.5}
