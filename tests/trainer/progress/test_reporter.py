"""The document of a run."""

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.failures import FailureReason
from simplerl_api.progress import Accuracy, RunState
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter, StepPoint, rounded


@pytest.fixture
def reporter(tmp_path: Path) -> Reporter:
    return Reporter("tiny-1a2b3-1", 60, Log(tmp_path / "driver.log", secrets=["hidden"], console=True))


CHANGES = {
    "training begins": lambda r: r.training(0),
    "a step": lambda r: r.step(1, {"reward": 0.5}, {"rollout": 1.0}, 2.0),
    "an evaluation": lambda r: r.evaluation("held-out", 0, 0.3),
    "a checkpoint": lambda r: r.checkpoint(4, "/c/4"),
    "the model": lambda r: r.model("/c/model"),
    "success": lambda r: r.succeeded(),
    "failure": lambda r: r.failed(FailureReason.LOST_RANK, "rank 1 is lost"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_each_visible_change_makes_the_sequence_grow_and_wakes_who_waits(reporter: Reporter, change) -> None:
    before = reporter.document().sequence
    waiting = [asyncio.create_task(reporter.newer(before, 30)) for _ in range(3)]
    await asyncio.sleep(0)
    change(reporter)
    found = await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert {f.sequence for f in found} == {before + 1}


async def test_what_moves_is_no_visible_change(reporter: Reporter) -> None:
    before = reporter.document()
    await asyncio.sleep(0.01)
    reporter.moved()
    assert reporter.document().sequence == before.sequence
    assert reporter.document().last_progress > before.last_progress


async def test_without_a_change_the_document_comes_after_the_wait(reporter: Reporter) -> None:
    start = time.monotonic()
    document = await reporter.newer(reporter.document().sequence, 0.2)
    assert 0.2 <= time.monotonic() - start < 2
    assert document == reporter.document()


def test_a_step_leaves_its_figures(reporter: Reporter) -> None:
    reporter.training(0)
    metrics = {"reward": 0.123456, "kl": float("nan"), "ratio_max": float("inf"), "samples_per_second": 300.0}
    reporter.step(10, metrics, {"rollout": 1.0, "update": 2.0}, 4.0)
    document = reporter.document()
    assert (document.state, document.step, document.total_steps) == (RunState.TRAINING, 10, 60)
    assert document.metrics == {"reward": 0.1235, "samples_per_second": 300.0}
    assert document.non_finite == ["kl", "ratio_max"]
    assert document.samples_per_second == 300.0
    assert document.eta_seconds == 200.0
    assert reporter.steps == [StepPoint(10, 0.1235, {"rollout": 1.0, "update": 2.0})]


def test_the_estimate_is_made_of_the_newest_steps(reporter: Reporter) -> None:
    for step in range(1, 21):
        reporter.step(step, {}, {}, 100.0 if step <= 10 else 2.0)
    assert reporter.document().eta_seconds == 80.0


def test_evaluations_keep_the_first_the_best_and_the_last(reporter: Reporter) -> None:
    for step, accuracy in ((0, 0.3), (20, 0.7), (40, 0.65)):
        reporter.evaluation("b", step, accuracy)
    reporter.evaluation("a", 0, 0.1)
    b, a = reporter.document().evaluations
    assert (b.dataset, b.first, b.best, b.last) == (
        "b", Accuracy(step=0, accuracy=0.3), Accuracy(step=20, accuracy=0.7), Accuracy(step=40, accuracy=0.65),
    )  # fmt: skip
    assert a.first == a.best == a.last == Accuracy(step=0, accuracy=0.1)


def test_a_failure_s_message_holds_no_secret(reporter: Reporter) -> None:
    reporter.failed(FailureReason.INVALID_INPUT, "no such file: /hidden/x")
    document = reporter.document()
    assert document.finished
    assert document.failure is not None
    assert (document.failure.reason, document.failure.message) == (FailureReason.INVALID_INPUT, "no such file: /***/x")


@given(st.floats(-1e30, 1e30, allow_nan=False))
def test_figures_keep_four_digits(value: float) -> None:
    assert rounded(value) == pytest.approx(value, rel=5.1e-4)
    assert rounded(rounded(value)) == rounded(value)
