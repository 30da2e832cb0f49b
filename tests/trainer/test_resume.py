"""Runs that are killed and taken up again are bitwise the run that nothing interrupted; and what a run leaves."""

import json
import random
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.trainer import running
from tests.trainer.disks import small_disk
from transformers import AutoModelForCausalLM, AutoTokenizer

from simplerl_api.failures import EXIT_CODES, FailureReason
from simplerl_trainer.checkpoints import store

STEPS = 8
SETTINGS = [
    "training.deterministic=true",
    f"training.steps={STEPS}",
    "checkpoint.everySteps=1",
    "checkpoint.keep=2",
    "rollout.promptsPerStep=16",
    "training.trainBatchSize=64",
    "model.tiny.warmupAccuracy=0.05",
    "evaluation.everySteps=2",
    "evaluation.datasets[0].reasoningGym.size=16",
    # an epoch ends in the middle of the fifth step
    "data.train.reasoningGym.size=70",
]
TIMES = {"seconds", "samples_per_second", "tokens_per_second"}


def figures(output: Path) -> list[Mapping[str, Any]]:
    """Every metric of every step but for times, to the last bit."""
    return [{k: v for k, v in line.items() if k not in TIMES} for line in running.metrics(output)]


def samples(output: Path) -> dict[str, str]:
    return {p.name: p.read_text(encoding="utf-8") for p in sorted((output / "samples").iterdir())}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupts."""
    output = tmp_path_factory.mktemp("whole") / "tiny"
    ended = running.train(output, SETTINGS)
    assert ended.code == 0, ended.text
    return output


def killed(output: Path, settings: Sequence[str], steps: int) -> list[Mapping[str, Any]]:
    """Kills a run some time after so many steps; what it had recorded."""
    pause = random.uniform(0, 1)
    print(f"killed {pause:.3f} s after step {steps}")
    with running.started(output, settings) as process:
        running.eventually(lambda: len(running.metrics(output)) >= steps, process)
        time.sleep(pause)
        running.end(process)
    return figures(output)


def test_a_run_that_is_killed_goes_on_bitwise_as_the_one_that_was_not(whole: Path, tmp_path: Path) -> None:
    # faults 31 (OpenRLHF#1103), 32 (NeMo-RL#3171), 33 (prime-rl#3004), 34 (prime-rl#2992, OpenRLHF#1208)
    output = tmp_path / "tiny"
    begun = killed(output, SETTINGS, 3)
    newest, _ = store.newest(output / "checkpoints")
    assert newest is not None
    broken = newest.folder / "critic/00001-of-00002.00000.safetensors"
    size = broken.stat().st_size
    broken.write_bytes(broken.read_bytes()[:-1])

    ended = running.train(output, SETTINGS)
    assert ended.code == 0, ended.text
    assert (newest.folder.name, f"{broken} has {size - 1} bytes instead of {size}") in [
        (e["checkpoint"], e["why"]) for e in running.events(output, "checkpoint skipped")
    ]
    assert [e["attempt"] for e in running.events(output, "driver started")] == [1, 2]
    (resumed,) = running.events(output, "resumed")
    assert resumed["step"] == newest.step - 1
    assert [line["step"] for line in figures(output)] == list(range(1, STEPS + 1)), "each step exactly once"
    assert begun == figures(whole)[: len(begun)]
    assert figures(output) == figures(whole)
    assert samples(output) == samples(whole)
    assert running.accuracies(output) == running.accuracies(whole)


@pytest.mark.long
def test_a_run_that_is_drained_saves_its_last_finished_step_and_goes_on_bitwise(whole: Path, tmp_path: Path) -> None:
    output, rarely = tmp_path / "tiny", [*SETTINGS, "checkpoint.everySteps=1000"]
    with running.started(output, rarely) as process:
        running.eventually(lambda: len(running.metrics(output)) >= 3, process)
        (driver,) = running.events(output, "driver started")
        asked = urllib.request.Request(
            f"http://127.0.0.1:{driver['progress_port']}/control", data=b'{"drain": true}', method="PUT"
        )
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert answer.status == 202
        assert process.wait(timeout=60) == 0, running.said(output).read_text()
    (drained,) = running.events(output, "run drained")
    newest, skipped = store.newest(output / "checkpoints")
    assert newest is not None
    assert (newest.step, list(skipped)) == (drained["step"], [])
    assert newest.step == len(running.metrics(output)) < STEPS
    assert not (output / "model").exists()

    ended = running.train(output, rarely)
    assert ended.code == 0, ended.text
    assert figures(output) == figures(whole)
    assert samples(output) == samples(whole)
    assert running.accuracies(output) == running.accuracies(whole)


def test_the_run_is_one_that_something_could_be_lost_of(whole: Path) -> None:
    lines = figures(whole)
    assert len({line["policy_loss"] for line in lines}) == STEPS
    assert len({line["actor_learning_rate"] for line in lines}) > 1, "the schedule moves"
    assert any(line["reward"] > 0 for line in lines)
    assert all(line["mismatch_max"] < 1e-4 for line in lines)


def simplerl(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([running.SIMPLERL, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(AutoModelForCausalLM.from_pretrained(folder, dtype="auto").named_parameters())


def test_a_checkpoint_is_exported_without_ranks_as_the_ranks_export_it(whole: Path, tmp_path: Path) -> None:
    done = simplerl("export", whole, "--output", tmp_path / "model")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{tmp_path / 'model'}: the policy after step {STEPS}, from {whole}/checkpoints/step-{STEPS:06}\n"
    )
    ours, theirs = weights(tmp_path / "model"), weights(whole / "model")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], p) for name, p in theirs.items())
    before = simplerl("export", whole, "--output", tmp_path / "model", "--step", STEPS - 1)
    assert before.returncode == 0, before.stderr
    assert any(not torch.equal(p, ours[name]) for name, p in weights(tmp_path / "model").items())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert tokenizer.decode(tokenizer("1 + 2").input_ids) == "1 + 2"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            ["{whole}", "--output", "{tmp}/model", "--step", "1"],
            f"{{whole}}/checkpoints has no checkpoint after step 1, but after: {STEPS - 1}, {STEPS}",
            id="of a step that is gone",
        ),
        pytest.param(
            ["{tmp}/none", "--output", "{tmp}/model"],
            "{tmp}/none has no folder checkpoints: give a run's folder, as --output of simplerl train",
            id="of no run",
        ),
        pytest.param(
            ["{whole}", "--output", "{whole}"],
            "--output {whole} holds something that is no model: choose another folder",
            id="over something else",
        ),
        pytest.param(
            ["{whole}", "--output", "{whole}/run.json"],
            "--output {whole}/run.json holds something that is no model: choose another folder",
            id="over a file",
        ),
    ],
)
def test_an_export_is_refused(whole: Path, tmp_path: Path, arguments: Sequence[str], sentence: str) -> None:
    names = {"whole": whole, "tmp": tmp_path}
    done = simplerl("export", *(a.format(**names) for a in arguments))
    assert (done.returncode, done.stderr) == (1, sentence.format(**names) + "\n")
    assert not (tmp_path / "model").exists()


def test_the_best_model_is_that_of_the_best_evaluation(whole: Path) -> None:
    best = json.loads((whole / "best-model/best.json").read_text(encoding="utf-8"))
    accuracies = running.accuracies(whole)
    assert best["accuracy"] == max(accuracies.values())
    assert best["step"] == min(step for step, accuracy in accuracies.items() if accuracy == best["accuracy"])
    assert best["dataset"] == "held-out"
    assert weights(whole / "best-model").keys() == weights(whole / "model").keys()


def test_nothing_half_written_is_left(whole: Path) -> None:
    assert sorted(p.name for p in (whole / "checkpoints").iterdir()) == [
        f"step-{STEPS - 1:06}",
        f"step-{STEPS:06}",
    ]
    assert not [p for p in whole.rglob("*") if p.name.endswith((".partial", ".old"))]


@pytest.mark.long
@pytest.mark.parametrize(
    "placement",
    [
        pytest.param([], id="two ranks beside an engine"),
        pytest.param(
            ["placement={colocated: {}}", "cluster.gpus=2", "cluster.gpusPerNode=2", "rollout.enginesPerGpu=2"],
            id="two ranks, each in a slot with two engines",
        ),
    ],
)
def test_a_run_that_is_killed_again_and_again_is_bitwise_the_same(tmp_path: Path, placement: Sequence[str]) -> None:
    settings = [*SETTINGS, *placement, "training.steps=24", "checkpoint.everySteps=3"]
    whole, output = tmp_path / "whole", tmp_path / "killed"
    assert running.train(whole, settings).code == 0
    for steps in (2, 7, 13, 19):
        begun = killed(output, settings, steps)
        assert begun == figures(whole)[: len(begun)]
    ended = running.train(output, settings)
    assert ended.code == 0, ended.text
    assert figures(output) == figures(whole)
    assert samples(output) == samples(whole)


@pytest.mark.long
def test_an_older_attempt_that_sees_a_newer_one_stops_and_writes_nothing_more(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    with running.started(output, [*SETTINGS, "training.steps=1000"]) as run:
        running.eventually(lambda: len(running.metrics(output)) >= 2, run)
        (output / "fence.json").write_text('{"attempt": 2}\n', encoding="utf-8")
        lines = len(running.metrics(output))
        assert run.wait(timeout=120) == EXIT_CODES[FailureReason.SUPERSEDED]
    (failure,) = running.events(output, "run failed")
    assert failure["why"] == f"attempt 2 writes into {output}: attempt 1 stops so as not to disturb it"
    assert len(running.metrics(output)) <= lines + 1
    assert not list((output / "checkpoints").glob("*.attempt-*"))


@pytest.mark.long
def test_a_disk_that_fills_ends_the_run_by_name_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 60) as disk:
        output = disk / "tiny"
        with running.started(output, [*SETTINGS, "training.steps=1000", "checkpoint.keep=1000"]) as run:
            code = run.wait(timeout=400)
        assert code == EXIT_CODES[FailureReason.CHECKPOINT_FAILED]
        (failure,) = running.events(output, "run failed")
        assert "No space left on device" in failure["why"]
        assert f"MiB are free at {disk}" in failure["why"]
        newest, _ = store.newest(output / "checkpoints")
        assert newest is not None
        assert newest.step == running.events(output, "checkpoint complete")[-1]["step"]
