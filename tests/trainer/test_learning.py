"""Whole examples learn, and do so by their gradients alone. In `make test` tests/e2e has the first of these runs, in
real pods, and policy/test_learning.py every algorithm on ranks alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.trainer import running

pytestmark = pytest.mark.long
TINY_GRPO = running.ROOT / "examples/tiny-grpo.yaml"


def learned(output: Path, settings: Sequence[str], file: Path = running.TINY) -> dict[int, float]:
    ended = running.train(output, settings, seconds=900, file=file)
    assert ended.code == 0, ended.text
    assert max(line["mismatch_max"] for line in running.metrics(output)) < 1e-4
    return running.accuracies(output)


def assert_climbs(accuracies: dict[int, float]) -> None:
    assert accuracies[80] >= 0.70, accuracies
    assert accuracies[80] >= 2 * accuracies[0], accuracies


def test_the_example_climbs_to_seven_tenths_and_twice_its_start(tmp_path: Path) -> None:
    assert_climbs(learned(tmp_path / "tiny", []))


def test_without_a_learning_rate_accuracy_does_not_climb(tmp_path: Path) -> None:
    accuracies = learned(tmp_path / "tiny", ["training.actor.learningRate=0", "training.steps=20"])
    assert accuracies[20] <= accuracies[0] + 0.08, accuracies


def test_samples_that_are_one_version_old_teach_as_well(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    ended = running.train(output, ["rollout.overlap=OneStep"], seconds=900)
    assert ended.code == 0, ended.text
    assert_climbs(running.accuracies(output))


def test_groups_that_teach_nothing_are_replaced_while_it_climbs(tmp_path: Path) -> None:
    output = tmp_path / "tiny"
    ended = running.train(output, ["algorithm.dynamicSampling.maxRounds=2"], seconds=900)
    assert ended.code == 0, ended.text
    assert_climbs(running.accuracies(output))
    lines = running.metrics(output)
    assert all(line["trained_groups"] <= 64 and 1 <= line["sampling_rounds"] <= 3 for line in lines)
    assert any(line["dropped_groups"] for line in lines)


ALGORITHMS = [
    pytest.param(["algorithm.rloo={}"], id="rloo"),
    pytest.param(["algorithm.reinforcePlusPlus={}"], id="reinforcePlusPlus"),
    pytest.param(["algorithm.reinforcePlusPlus={groupBaseline: true}"], id="reinforcePlusPlus, group baseline"),
    pytest.param(["algorithm.grpo={normalizeByStd: false}", "algorithm.loss.aggregation=Constant"], id="Dr.GRPO"),
]


def test_the_example_of_grpo_climbs_as_far(tmp_path: Path) -> None:
    assert_climbs(learned(tmp_path / "tiny", [], TINY_GRPO))


@pytest.mark.parametrize("settings", ALGORITHMS)
def test_every_algorithm_climbs_as_far(tmp_path: Path, settings: list[str]) -> None:
    assert_climbs(learned(tmp_path / "tiny", settings))


def test_without_a_learning_rate_grpo_does_not_climb(tmp_path: Path) -> None:
    accuracies = learned(tmp_path / "tiny", ["training.actor.learningRate=0", "training.steps=20"], TINY_GRPO)
    assert accuracies[20] <= accuracies[0] + 0.08, accuracies


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_seed_climbs(tmp_path: Path, seed: int) -> None:
    assert_climbs(learned(tmp_path / "tiny", [f"training.seed={seed}", f"model.tiny.seed={seed}"]))
