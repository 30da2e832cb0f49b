"""A job of no steps, which only evaluates, without Kubernetes."""

import json
from pathlib import Path

from tests.trainer import running

SETTINGS = [
    "training.steps=0",
    "placement.disaggregated.trainingGpus=1",
    "cluster.gpus=2",
    "evaluation.datasets[0].reasoningGym.size=40",
    "evaluation.samples=2",
]


def test_a_job_of_no_steps_evaluates_and_ends(tmp_path: Path) -> None:
    output = tmp_path / "run"
    ended = running.train(output, SETTINGS)
    assert ended.code == 0, ended.text
    (evaluated,) = running.events(output, "evaluated")
    assert (evaluated["step"], evaluated["dataset"], evaluated["answers"]) == (0, "held-out", 80)
    lines = (output / "samples/evaluation-held-out-000000.jsonl").read_text().split("\n")[:-1]
    right = sum(json.loads(line)["verdict"] == "equal" for line in lines)
    assert evaluated["accuracy"] == right / 80
    assert evaluated["low"] < evaluated["accuracy"] < evaluated["high"]
    assert running.metrics(output) == [], "no step was done"
    (figures,) = (json.loads(line) for line in (output / "evaluations.jsonl").read_text().split("\n")[:-1])
    assert (figures["step"], figures["dataset"], figures["questions"], figures["samples"]) == (0, "held-out", 40, 80)
    assert set(figures["passAt"]) == set(figures["majorityAt"]) == {"1", "2"}
    left = {p.name for p in output.iterdir()}
    assert not left & {"checkpoints", "model", "best-model"}, "nothing was trained, and nothing is kept"
