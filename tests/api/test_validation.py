"""What the cluster would say of a job: each fault is a sentence that names the field, its value and what fits."""

from pathlib import Path
from typing import Any

import pytest

from simplerl_api import overrides, validation, yaml12

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny() -> dict[str, Any]:
    return yaml12.load_file(ROOT / "examples/tiny.yaml")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_every_example_is_valid(example: Path) -> None:
    assert validation.faults(yaml12.load_file(example)) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["training.stepz=3"], 'unknown field "spec.training.stepz": did you mean steps?'),
        (["rewards[0].math.corect=1"], 'unknown field "spec.rewards[0].math.corect": did you mean correct?'),
        (["rollout.engines=0"], "spec.rollout.engines is 0: it should be greater than or equal to 1"),
        (["training.steps='3'"], "spec.training.steps is '3': it should be a valid integer"),
        (["algorithm.kl.placement=reward"], "spec.algorithm.kl.placement is 'reward': it should be 'Reward' or 'Loss'"),
        (["model.path=/models/m"], "spec.model: give exactly one of hub, path, tiny, not path and tiny"),
        (["model={}"], "spec.model: give exactly one of hub, path, tiny, not none of them"),
        (["data.train={}"], "spec.data.train: give exactly one of file, hub, reasoningGym, not none of them"),
        (["rewards=[{name: a}]"], "spec.rewards[0]: give exactly one of math, python, http, task, not none of them"),
        (
            ["cluster.gpus=5", "cluster.gpusPerNode=2", "placement={colocated: {}}"],
            "spec.cluster.gpus is 5, which is not a multiple of cluster.gpusPerNode 2: use 4 or 6 GPUs, or 1 a node",
        ),
        (
            ["training.trainBatchSize=100"],
            "spec.training.trainBatchSize is 100, which does not divide the 512 samples of a step "
            "(rollout.promptsPerStep 64 x rollout.samplesPerPrompt 8): 64 or 128 would",
        ),
        (
            ["placement.disaggregated.trainingGpus=3"],
            "spec.placement.disaggregated.trainingGpus is 3, which leaves none of cluster.gpus 3 to roll out: "
            "use at most 2",
        ),
        (
            ["cluster.gpus=1", "placement.disaggregated.trainingGpus=1"],
            "spec.cluster.gpus is 1, too few for placement.disaggregated: use at least 2, or colocated",
        ),
        (
            ["rollout.engines=9"],
            "spec.rollout.engines is 9, more than 8 on each of the 1 GPUs that roll out: use at most 8",
        ),
        (
            ["placement.disaggregated.trainingGpus=1", "rollout.engines=1"],
            "spec.rollout.engines is 1, which leaves some of the 2 GPUs that roll out idle: use at least 2, or raise "
            "placement.disaggregated.trainingGpus",
        ),
        (
            ["rollout.engines=3", "rollout.enginesPerGpu=2"],
            "spec.rollout.engines is 3, but rollout.enginesPerGpu 2 on 1 GPUs that roll out makes 2: give one of the "
            "two",
        ),
        (
            ["training.maxTokensPerMicroBatch=20"],
            "spec.training.maxTokensPerMicroBatch is 20, too small for one sample of data.maxPromptTokens 16 + "
            "rollout.sampling.maxNewTokens 8: use at least 24",
        ),
        (
            ["rollout.promptsPerStep=1", "rollout.samplesPerPrompt=1", "training.trainBatchSize=1"],
            "spec.training.trainBatchSize is 1, less than the 2 training ranks: use at least 2",
        ),
        (
            ["metadata.name=tiny.job"],
            "metadata.name is tiny.job: metadata.name must be at most 44 characters of a-z, 0-9 and -, start with a "
            "letter and end with a letter or digit (its pods and services are named after it)",
        ),
        (
            ["cluster.env=[{name: HOME, value: /root}]"],
            "spec.cluster.env[0].name: the operator sets HOME: leave it out",
        ),
        (
            ["evaluation.temperature=0.001"],
            "spec.evaluation.temperature: evaluation.temperature must be 0 or from 0.01 to 2",
        ),
        (
            ["checkpoint.best=gsm8k"],
            "spec.checkpoint.best is gsm8k, which is no evaluation data set: use one of held-out",
        ),
        (
            ["training.deterministic=true", "rollout.overlap=OneStep"],
            "spec.training.deterministic is true, which needs rollout.overlap None, not OneStep: a resumed run has no "
            "batch that was drawn ahead",
        ),
        (["training.actor.learningRate=.nan"], "spec.training.actor.learningRate is NaN: it should be a finite number"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_fault_is_a_sentence(tiny: dict[str, Any], settings: list[str], sentence: str) -> None:
    assert validation.faults(overrides.apply(tiny, settings)) == [sentence]


def test_a_missing_section_is_named(tiny: dict[str, Any]) -> None:
    del tiny["spec"]["cluster"]
    assert validation.faults(tiny) == ["spec.cluster is missing: it must be given"]


def test_the_best_of_no_evaluation_is_refused(tiny: dict[str, Any]) -> None:
    del tiny["spec"]["evaluation"]
    assert validation.faults(overrides.apply(tiny, ["checkpoint.best=gsm8k"])) == [
        "spec.checkpoint.best is gsm8k, which is no evaluation data set: give evaluation.datasets, or leave it out"
    ]


def test_a_long_name_is_refused(tiny: dict[str, Any]) -> None:
    tiny["metadata"]["name"] = "a" * 45
    assert len(validation.faults(tiny)) == 1
    tiny["metadata"]["name"] = "a" * 44
    assert validation.faults(tiny) == []


def test_a_document_that_is_not_an_object_is_refused() -> None:
    assert validation.faults([1]) == ["expected an object with apiVersion, kind, metadata and spec, found a list"]
