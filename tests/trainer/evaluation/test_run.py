"""Whole evaluations on real engines: what they leave, gone on with after a kill, whatever the batch and the engines."""

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from simplerl_api.spec.model import TinyModel
from simplerl_trainer.evaluation import comparison, folder, models, sets
from simplerl_trainer.evaluation.evaluate import Settings
from simplerl_trainer.evaluation.run import Task, run
from simplerl_trainer.evaluation.show import Row
from simplerl_trainer.models import tiny

QUESTIONS = 60
TOO_LONG = 7
"""Position of a question that the model cannot take."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny"
    tiny.build(path, TinyModel())
    return path


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> sets.Set:
    draw = random.Random(5)
    rows: list[dict[str, Any]] = []
    for i in range(QUESTIONS):
        terms = [draw.randint(0, 10) for _ in range(4)]
        rows.append({"question": f"Calculate {' + '.join(map(str, terms))}.", "answer": sum(terms), "level": i % 2})
    rows[TOO_LONG]["question"] += " Take your time." * 200
    file = tmp_path_factory.mktemp("data") / "sums.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    (source,) = sets.sources([f"sums={file}"], None)
    return sets.read(source)


def task(model: Path, sums: sets.Set, output: Path, **more: Any) -> Task:
    return Task(
        models=models.find([model]),
        sets=[sums],
        settings=Settings(job_seed=0, temperature=0.0, max_new_tokens=6, samples=1),
        template="{question}",
        output=output,
        deterministic=True,
        **more,
    )


@pytest.fixture(scope="module")
def whole(model: Path, sums: sets.Set, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Row]:
    """An evaluation in one sitting, on two engines of 32 responses at once."""
    output = tmp_path_factory.mktemp("whole")
    (row,) = asyncio.run(run(task(model, sums, output, engines=2, batch_size=32)))
    return output, row


def test_every_question_has_its_line_and_counts(whole: tuple[Path, Row]) -> None:
    output, row = whole
    lines = [json.loads(line) for line in (output / "tiny/sums.jsonl").read_text().split("\n") if line]
    assert sorted(line["id"] for line in lines) == list(range(QUESTIONS))
    right = sum(line["verdict"] == "equal" for line in lines)
    assert row.figures.accuracy == right / QUESTIONS
    assert 0.2 < row.figures.accuracy < 1.0, "a model that knows some sums"
    for line in lines:
        read = line["response"].split()
        if line["verdict"] == "equal":
            assert line["extracted"] in line["response"]
            assert read[-1] == line["answer"]


def test_a_question_that_cannot_be_asked_is_a_failed_sample(whole: tuple[Path, Row]) -> None:
    output, row = whole
    lines = [json.loads(line) for line in (output / "tiny/sums.jsonl").read_text().split("\n") if line]
    (failed,) = (line for line in lines if line["finish"] == "Unasked")
    assert (failed["id"], failed["verdict"], failed["tokens"]) == (TOO_LONG, "failed", 0)
    assert failed["why"].startswith("its prompt of ")
    assert (row.figures.failed, row.figures.samples) == (1, QUESTIONS)


def test_the_figures_lie_beside_the_samples(whole: tuple[Path, Row]) -> None:
    output, row = whole
    document = json.loads((output / "tiny/sums.json").read_text())
    assert [document] == json.loads((output / "metrics.json").read_text())
    assert document["accuracy"] == pytest.approx(row.figures.accuracy, abs=1e-6)
    assert document["interval"][0] < document["accuracy"] < document["interval"][1]
    assert document["tokensPerSecond"] > 0
    assert set(document["byLevel"]) == {"0", "1"}


async def test_after_a_kill_the_rest_is_drawn_and_batch_and_engines_change_nothing(
    model: Path, sums: sets.Set, whole: tuple[Path, Row], tmp_path: Path
) -> None:
    output, row = whole
    killed = tmp_path / "killed"
    shutil.copytree(output, killed)
    samples = killed / "tiny/sums.jsonl"
    before = samples.read_bytes()[: samples.stat().st_size // 5]  # it ends in the middle of a line
    samples.write_bytes(before)
    (again,) = await run(task(model, sums, killed, engines=1, batch_size=3))
    kept = before[: before.rfind(b"\n") + 1]
    assert samples.read_bytes().startswith(kept), "finished samples are neither drawn nor written again"
    assert len(samples.read_bytes().split(b"\n")) == QUESTIONS + 1
    (found,) = comparison.compare(killed, output, [("tiny", "sums")])
    assert (found.common, found.responses, found.verdicts) == (QUESTIONS, [], [])
    assert again.figures == row.figures


@pytest.mark.long
async def test_two_processes_that_hold_one_engine_answer_as_one(
    model: Path, sums: sets.Set, whole: tuple[Path, Row], tmp_path: Path
) -> None:
    output, row = whole
    (found,) = await run(task(model, sums, tmp_path / "two", engines=1, tensor_parallel=2))
    (compared,) = comparison.compare(tmp_path / "two", output, [("tiny", "sums")])
    assert compared.common == QUESTIONS
    assert len(compared.responses) <= 1, "sums are rounded in another order"
    assert found.figures.samples == row.figures.samples


async def test_a_finished_evaluation_starts_nothing(
    model: Path, sums: sets.Set, whole: tuple[Path, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, row = whole
    before = folder.samples(output, "tiny", "sums").read_bytes()
    monkeypatch.setattr("simplerl_trainer.own_ray.start", lambda *_, **__: pytest.fail("Ray was started"))
    (again,) = await run(task(model, sums, output))
    assert again.figures == row.figures
    assert again.tokens_per_second == pytest.approx(row.tokens_per_second, abs=0.1), "as they were measured"
    assert folder.samples(output, "tiny", "sums").read_bytes() == before
