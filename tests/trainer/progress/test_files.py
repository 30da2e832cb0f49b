"""What every step leaves in the run's folder."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplerl_trainer.progress import files
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

SAMPLE = Sample(7, Prompt(3, "1 + 1", "2", (5, 6)), (8, 9, 1), Finish.STOP, 4, None)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_bytes().decode("utf-8").splitlines()]


def test_a_step_is_a_line_of_metrics(tmp_path: Path) -> None:
    files.add_step(tmp_path, 1, {"reward": 0.123456, "kl": float("nan")}, {"rollout": 1.5})
    files.add_step(tmp_path, 2, {"reward": 0.2}, {"rollout": 1.0})
    assert lines(tmp_path / "metrics.jsonl") == [
        {"step": 1, "reward": 0.123456, "non_finite": ["kl"], "seconds": {"rollout": 1.5}},
        {"step": 2, "reward": 0.2, "seconds": {"rollout": 1.0}},
    ]


@pytest.mark.parametrize(("step", "kept"), [(0, []), (2, [1, 2]), (9, [1, 2, 3])])
def test_steps_that_will_be_written_again_are_forgotten(tmp_path: Path, step: int, kept: list[int]) -> None:
    for i in (1, 2, 3):
        files.add_step(tmp_path, i, {}, {})
    files.forget_after(tmp_path, step)
    assert [line["step"] for line in lines(tmp_path / "metrics.jsonl")] == kept
    files.forget_after(tmp_path / "empty", step)


@pytest.mark.parametrize(("step", "kept"), [(0, []), (2, [0, 2]), (9, [0, 2, 4])])
def test_evaluations_that_will_be_made_again_are_forgotten(tmp_path: Path, step: int, kept: list[int]) -> None:
    for i in (0, 2, 4):
        files.add_evaluation(tmp_path, i, "gsm8k", {"accuracy": 0.5})
    files.forget_after(tmp_path, step)
    found = lines(tmp_path / "evaluations.jsonl")
    assert [line["step"] for line in found] == kept
    assert all((line["dataset"], line["accuracy"]) == ("gsm8k", 0.5) for line in found)


def test_a_sample_is_a_line_with_its_judgement(tmp_path: Path) -> None:
    score = Score(0.5, "different", "3", "expected 2", {"sum": 0.5})
    files.write_samples(tmp_path, "step-000012", [Scored(SAMPLE, score)], {7: "3"})
    assert lines(tmp_path / "samples" / "step-000012.jsonl") == [
        {
            "id": 7,
            "question": "1 + 1",
            "answer": "2",
            "response": "3",
            "tokens": 3,
            "finish": "Stop",
            "score": 0.5,
            "verdict": "different",
            "extracted": "3",
            "why": "expected 2",
            "rewards": {"sum": 0.5},
            "failed": [],
            "weights_version": 4,
        }
    ]


def test_a_trained_sample_has_its_advantage_and_one_that_was_left_out_null(tmp_path: Path) -> None:
    score = Score(0.5, "different")
    scored = [Scored(replace(SAMPLE, id=i), score) for i in (1, 2, 3)]
    files.write_samples(tmp_path, "step-000001", scored, dict.fromkeys((1, 2, 3), "3"), {1: -0.75, 3: float("nan")})
    advantages = [line["advantage"] for line in lines(tmp_path / "samples" / "step-000001.jsonl")]
    assert advantages == [-0.75, None, None]


@given(st.text())
@settings(deadline=None)  # a busy disk
def test_a_line_is_one_object_whatever_the_text_holds(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("run")
    score = Score(0.0, "different", text, text)
    files.write_samples(folder, "s", [Scored(SAMPLE, score)] * 2, {7: text})
    first, second = lines(folder / "samples" / "s.jsonl")
    assert first == second
    assert (first["response"], first["extracted"]) == (text, text)
