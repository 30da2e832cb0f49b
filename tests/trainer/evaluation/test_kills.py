"""`simplerl eval` as people run it: killed in the middle and gone on with, and on every checkpoint of a run."""

import json
import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.trainer import running

from simplerl_api.spec.model import TinyModel
from simplerl_trainer.models import tiny

pytestmark = pytest.mark.long
SECONDS = 300

QUESTIONS, SAMPLES = 300, 4


def questions(file: Path) -> Path:
    draw = random.Random(7)
    with file.open("w") as f:
        for _ in range(QUESTIONS):
            terms = [draw.randint(0, 10) for _ in range(4)]
            f.write(json.dumps({"question": f"Calculate {' + '.join(map(str, terms))}.", "answer": sum(terms)}) + "\n")
    return file


def command(model: Path, data: Path, output: Path, *more: str) -> Sequence[str]:
    words = ["--model-path", model, "--data", f"sums={data}", "--output", output, "--template", "{question}"]
    return [str(w) for w in (running.SIMPLERL, "eval", *words, "--max-tokens", "6", "--engines", "1", *more)]


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_bytes().split(b"\n") if line] if file.exists() else []


def test_after_a_kill_finished_samples_are_neither_lost_nor_drawn_again(tmp_path: Path) -> None:
    tiny.build(tmp_path / "tiny", TinyModel())
    data, output = questions(tmp_path / "q.jsonl"), tmp_path / "out"
    words = command(
        tmp_path / "tiny", data, output, "--n-samples", str(SAMPLES), "--temperature", "1", "--batch-size", "4"
    )
    samples = output / "tiny/sums.jsonl"
    with (tmp_path / "said.txt").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        try:
            bound = time.monotonic() + SECONDS
            while not (samples.exists() and samples.read_bytes().count(b"\n") >= 50):
                assert process.poll() is None, (tmp_path / "said.txt").read_text()
                assert time.monotonic() < bound, f"no samples within {SECONDS} s"
                time.sleep(0.05)
        finally:
            running.end(process)
    before = samples.read_bytes()
    kept = before[: before.rfind(b"\n") + 1]
    assert 50 <= kept.count(b"\n") < QUESTIONS * SAMPLES, "it was killed in the middle"
    ended = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr
    assert samples.read_bytes().startswith(kept)
    found = lines(samples)
    assert sorted(line["id"] for line in found) == list(range(QUESTIONS * SAMPLES))  # type: ignore[type-var]
    (row,) = json.loads((output / "metrics.json").read_text())
    assert row["accuracy"] == pytest.approx(sum(line["verdict"] == "equal" for line in found) / len(found), abs=1e-6)
    assert row["passAt"]["1"] == pytest.approx(row["accuracy"], abs=1e-6)
    assert row["passAt"]["1"] < row["passAt"]["2"] < row["passAt"]["4"]
    assert "pass@4" in ended.stdout
    assert "maj@4" in ended.stdout


def test_every_checkpoint_of_a_run_has_a_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = [
        "training.steps=2", "checkpoint.everySteps=1", "placement.disaggregated.trainingGpus=1", "cluster.gpus=2",
        "evaluation.datasets[0].reasoningGym.size=16", "rollout.promptsPerStep=16",
    ]  # fmt: skip
    ended = running.train(run, settings)
    assert ended.code == 0, ended.text
    data, output = questions(tmp_path / "q.jsonl"), tmp_path / "out"
    found = subprocess.run(
        command(run, data, output, "--limit", "20"), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert found.returncode == 0, found.stderr
    rows = json.loads((output / "metrics.json").read_text())
    assert [row["model"] for row in rows] == ["run-step-000001", "run-step-000002"]
    assert all(row["samples"] == 20 for row in rows)
    assert not list(output.glob(".*")), "the exported weights are gone"
    assert "run-step-000002" in found.stdout
