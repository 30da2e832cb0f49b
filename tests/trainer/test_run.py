"""Whole runs on this machine: what they leave behind, how they go on after an end in the middle, how they fail."""

import json
import re
from pathlib import Path

import pytest
import torch
from tests.trainer import running
from transformers import AutoModelForCausalLM, AutoTokenizer

from simplerl_api.failures import EXIT_CODES, FailureReason
from simplerl_trainer.checkpoints import store

SMALL = ["rollout.promptsPerStep=16", "training.trainBatchSize=64", "model.tiny.warmupAccuracy=0"]
FEWER_QUESTIONS = "evaluation.datasets[0].reasoningGym.size=32"


@pytest.fixture(scope="module")
def four_steps(tmp_path_factory: pytest.TempPathFactory) -> tuple[running.Ended, Path]:
    output = tmp_path_factory.mktemp("run") / "tiny"
    settings = ["training.steps=4", "checkpoint.everySteps=2", "checkpoint.keep=1", FEWER_QUESTIONS]
    return running.train(output, settings), output


def test_a_run_that_reaches_its_last_step_exits_with_0(four_steps: tuple[running.Ended, Path]) -> None:
    ended, _ = four_steps
    assert ended.code == 0, ended.text
    assert '"run succeeded"' in ended.text


def test_each_step_leaves_a_line_of_metrics_and_a_file_of_samples(four_steps: tuple[running.Ended, Path]) -> None:
    _, output = four_steps
    lines = running.metrics(output)
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    for line in lines:
        assert 0 <= line["mismatch_max"] < 1e-4, "engine and ranks disagree on the weights"
        assert line["ratio_first_deviation"] == 0
        assert line["skipped_updates"] == 0
        samples = (output / f"samples/step-{line['step']:06}.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(samples) == 512
        assert {json.loads(s)["weights_version"] for s in samples} == {line["step"] - 1}
        assert sum(json.loads(s)["score"] for s in samples) / 512 == pytest.approx(line["reward"])


PAGE = (running.ROOT / "docs/metrics.md").read_text("utf-8")
DOCUMENTED = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
REQUIRED = {
    "reward", "kl", "entropy", "clip_fraction", "ratio_max", "explained_variance", "actor_grad_norm",
    "critic_grad_norm", "response_length", "truncated", "zero_variance_groups", "mismatch_max", "seconds",
}  # fmt: skip
"""What every step of PPO must leave."""


def test_every_metric_of_a_step_is_there_and_documented(four_steps: tuple[running.Ended, Path]) -> None:
    _, output = four_steps
    for line in running.metrics(output):
        assert set(line) >= REQUIRED
        named = {name.replace("_sum", "_NAME") if name.endswith("_sum") else name for name in line}
        assert named - DOCUMENTED - {"step"} == set()
        assert set(line["seconds"]) >= {"rollout", "annotate", "update", "sync", "total"}


def test_tensorboard_has_the_same_figures(four_steps: tuple[running.Ended, Path]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _, output = four_steps
    events = EventAccumulator(str(output / "tensorboard"))
    events.Reload()
    rewards = [(e.step, e.value) for e in events.Scalars("reward")]
    assert rewards == [(line["step"], pytest.approx(line["reward"])) for line in running.metrics(output)]
    assert [e.step for e in events.Scalars("evaluation/held-out")] == [0, 4]


def test_evaluations_come_before_the_first_step_and_after_the_last(four_steps: tuple[running.Ended, Path]) -> None:
    _, output = four_steps
    assert sorted(running.accuracies(output)) == [0, 4]
    assert sorted(p.name for p in (output / "samples").glob("evaluation-*")) == [
        "evaluation-held-out-000000.jsonl",
        "evaluation-held-out-000004.jsonl",
    ]


def test_only_the_newest_checkpoint_is_kept_and_it_is_whole(four_steps: tuple[running.Ended, Path]) -> None:
    _, output = four_steps
    assert [e["step"] for e in running.events(output, "checkpoint complete")] == [2, 4]
    root = output / "checkpoints"
    assert [p.name for p in root.iterdir()] == ["step-000004"]
    newest, skipped = store.newest(root)  # compares every file with the manifest
    assert newest is not None
    assert newest.step == 4
    assert not skipped


def test_the_model_is_a_plain_hugging_face_folder_that_differs_from_its_start(
    four_steps: tuple[running.Ended, Path],
) -> None:
    _, output = four_steps
    trained = AutoModelForCausalLM.from_pretrained(output / "model", dtype=torch.float32)
    first = AutoModelForCausalLM.from_pretrained(output / "initial-model", dtype=torch.float32).state_dict()
    assert all(torch.isfinite(p).all() for p in trained.state_dict().values())
    assert any(not torch.equal(p, first[name]) for name, p in trained.state_dict().items())
    ids = AutoTokenizer.from_pretrained(output / "model")("Calculate 1 + 2 + 3 + 4.", return_tensors="pt").input_ids
    assert trained.generate(ids, max_new_tokens=4).shape[1] > ids.shape[1]


@pytest.mark.long
def test_a_run_that_is_killed_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    offline = "tracking.wandb={mode: Offline}"
    settings = [*SMALL, "training.steps=12", "checkpoint.everySteps=3", FEWER_QUESTIONS, offline]
    with running.started(output, settings) as process:
        running.eventually(lambda: len(running.metrics(output)) >= 4, process)
        running.end(process)
    begun = running.metrics(output)
    assert len(begun) < 12, "the run was over before it was killed"

    ended = running.train(output, settings)
    assert ended.code == 0, ended.text
    assert [e["attempt"] for e in running.events(output, "driver started")] == [1, 2]
    submissions = [e["submission"] for e in running.events(output, "driver started")]
    assert [s.rsplit("-", 1)[1] for s in submissions] == ["1", "2"]
    (resumed,) = running.events(output, "resumed")
    assert resumed["step"] % 3 == 0
    assert resumed["step"] >= 3
    lines = running.metrics(output)
    assert [line["step"] for line in lines] == list(range(1, 13)), "each step exactly once"
    assert lines[: resumed["step"]] == begun[: resumed["step"]]
    assert all(line["mismatch_max"] < 1e-4 for line in lines)
    assert sorted(running.accuracies(output)) == [0, 12]

    tracked = [folder.name.rsplit("-", 1)[1] for folder in (output / "wandb").glob("offline-run-*")]
    assert len(tracked) == 2, "each attempt leaves its part"
    assert len(set(tracked)) == 1, "of one run"

    again = running.train(output, settings)  # nothing is left to do
    assert again.code == 0, again.text
    assert running.metrics(output) == lines


def test_two_engines_share_a_slot_with_a_rank(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    colocated = [
        "placement={colocated: {}}",
        "cluster.gpus=1",
        "rollout.enginesPerGpu=2",
        "training.zeroStage=3",
        "training.steps=2",
    ]
    ended = running.train(output, [*SMALL, FEWER_QUESTIONS, *colocated])
    assert ended.code == 0, ended.text
    assert [(line["step"], line["mismatch_max"] < 1e-4) for line in running.metrics(output)] == [(1, True), (2, True)]


@pytest.mark.long
def test_an_engine_spans_two_slots_with_ranks(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    spanning = [
        "placement={colocated: {}}",
        "cluster.gpus=2",
        "rollout.tensorParallelSize=2",
        "rollout.verifyWeights=true",
        "evaluation.topP=0.9",
        "training.steps=2",
    ]
    ended = running.train(output, [*SMALL, FEWER_QUESTIONS, *spanning])
    assert ended.code == 0, ended.text
    assert [(line["step"], line["mismatch_max"] < 1e-4) for line in running.metrics(output)] == [(1, True), (2, True)]


def test_invalid_input_ends_the_run_with_its_exit_code(tmp_path: Path) -> None:
    """test_bad_input.py has every sentence, in a process that runs already."""
    output = tmp_path / "tiny"
    ended = running.train(output, [f"data.train={{file: {tmp_path}/none.jsonl}}"], seconds=150)
    assert ended.code == EXIT_CODES[FailureReason.INVALID_INPUT], ended.text
    (failure,) = running.events(output, "run failed")
    assert failure["reason"] == "InvalidInput"
    assert failure["why"].startswith(f"data.train.file is {tmp_path}/none.jsonl, which does not exist")
    assert "Traceback" not in ended.text


COLOCATED = ["placement={colocated: {}}", "cluster.gpus=1"]


@pytest.mark.parametrize(
    ("process", "placement", "reason", "sentence"),
    [
        pytest.param("RankActor", [], FailureReason.LOST_RANK, r"rank \d .*annotating samples", id="a rank"),
        pytest.param(
            "EngineActor",
            COLOCATED,
            FailureReason.LOST_ENGINES,
            "no rollout engine is left: engine 0",
            id="all engines where they share their GPUs with ranks",
        ),
    ],
)
def test_a_run_that_loses(
    tmp_path: Path, process: str, placement: list[str], reason: FailureReason, sentence: str
) -> None:
    output = tmp_path / "tiny"
    # long responses: the process is killed in the rollout that begins after a step
    settings = [*SMALL, *placement, FEWER_QUESTIONS, "training.steps=1000", "rollout.sampling.maxNewTokens=100"]
    with running.started(output, settings) as run:
        running.eventually(lambda: bool(running.metrics(output)), run)
        running.part(run, process).kill()
        assert run.wait(timeout=120) == EXIT_CODES[reason]
    (failure,) = running.events(output, "run failed")
    assert failure["reason"] == reason
    assert re.match(sentence, failure["why"])
    assert "\n" not in failure["why"]


def test_a_run_whose_only_engine_is_killed_goes_on_with_another(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    ahead = ["rollout.overlap=OneStep", "algorithm.dynamicSampling.maxRounds=1", "model.tiny.warmupAccuracy=0.1"]
    with running.started(output, [*SMALL, FEWER_QUESTIONS, *ahead, "training.steps=20"]) as run:
        running.eventually(lambda: len(running.metrics(output)) >= 2, run, seconds=600)
        running.part(run, "EngineActor").kill()
        assert run.wait(timeout=600) == 0, running.said(output).read_text(encoding="utf-8")
    lines = running.metrics(output)
    assert [line["step"] for line in lines] == list(range(1, 21)), "each step exactly once"
    assert (lines[0]["engines_lost"], lines[-1]["engines_lost"], lines[-1]["engines"]) == (0, 1, 1)
    assert {line["staleness"] for line in lines} == {0, 1}
    (lost,) = running.events(output, "engine lost")
    assert lost["engine"] == 0
    assert all(0.5 < line["behavior_weight_mean"] < 1.5 for line in lines if line["trained_groups"])
    assert any(line["trained_groups"] for line in lines)
