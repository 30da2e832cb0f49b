"""What the next attempt does differently after one that ran out of memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api import adaptations, overrides, run, validation, yaml12
from simplerl_api.plan import Plan, make_plan
from simplerl_api.spec.job import Spec
from simplerl_api.status import Adaptation

ROOT = Path(__file__).parents[2]
ROLLOUT, TRAINING = "RolloutOutOfMemory", "TrainingOutOfMemory"


def job(*settings: str, example: str = "tiny") -> tuple[Spec, Plan]:
    document = overrides.apply(yaml12.load_file(ROOT / f"examples/{example}.yaml"), settings)
    spec = validation.parse(document).spec
    return spec, make_plan(spec)


def ladder(reason: str, spec: Spec, plan: Plan) -> list[str]:
    """Every change, where attempts go on running out of memory."""
    said: list[str] = []
    while (change := adaptations.following(spec, plan, reason, len(said) + 2)) is not None:
        said.append(f"{change.path}: {change.before} -> {change.to}")
        spec = adaptations.effective(spec, [change])
        plan = adaptations.adapted(plan, spec)
        assert len(said) < 100, "a ladder ends"
    return said


@pytest.mark.parametrize(
    ("reason", "settings", "changes"),
    [
        pytest.param(
            ROLLOUT,
            ["cluster={gpus: 4}", "placement={colocated: {}}", "rollout.maxNumSeqs=64"],
            [
                "rollout.maxNumBatchedTokens: 8192 -> 4096", "rollout.maxNumBatchedTokens: 4096 -> 2048",
                "rollout.maxNumSeqs: 64 -> 32", "rollout.tensorParallelSize: 1 -> 2",
                "rollout.tensorParallelSize: 2 -> 4",
            ],
            id="engines on GPUs",
        ),
        pytest.param(
            ROLLOUT,
            ["cluster={gpus: 4}", "placement={colocated: {}}", "rollout.maxNumSeqs=32", "rollout.engines=12",
             "rollout.maxNumBatchedTokens=2048"],
            ["rollout.tensorParallelSize: 1 -> 2", "rollout.tensorParallelSize: 2 -> 4"],
            id="three engines on a GPU, then on two",
        ),
        pytest.param(
            ROLLOUT,
            ["rollout.maxNumBatchedTokens=3000", "rollout.maxNumSeqs=2500"],
            ["rollout.maxNumBatchedTokens: 3000 -> 2500", "rollout.maxNumSeqs: 2500 -> 1250",
             "rollout.maxNumBatchedTokens: 2500 -> 2048", "rollout.maxNumSeqs: 1250 -> 625",
             "rollout.maxNumSeqs: 625 -> 312", "rollout.maxNumSeqs: 312 -> 156", "rollout.maxNumSeqs: 156 -> 78",
             "rollout.maxNumSeqs: 78 -> 39", "rollout.maxNumSeqs: 39 -> 32"],
            id="a token for each sequence, on CPUs",
        ),
        pytest.param(
            TRAINING,
            ["cluster={gpus: 2}", "placement={colocated: {}}", "rollout.sampling.maxNewTokens=7000",
             "data.maxPromptTokens=1000", "training={steps: 3}", "rollout.promptsPerStep=64"],
            [
                "training.maxTokensPerMicroBatch: 32768 -> 16384", "training.maxTokensPerMicroBatch: 16384 -> 8192",
                "training.maxTokensPerMicroBatch: 8192 -> 8000", "training.gradientCheckpointing: None -> True",
                "training.zeroStage: None -> 3", "training.offload.optimizer: False -> True",
            ],
            id="ranks on GPUs",
        ),
        pytest.param(
            TRAINING,
            ["cluster={gpus: 1}", "placement={colocated: {}}", "rollout.promptsPerStep=64",
             "training={steps: 3, trainBatchSize: 64, gradientAccumulationSteps: 24, zeroStage: 0}"],
            ["training.gradientAccumulationSteps: 24 -> 48", "training.gradientAccumulationSteps: 48 -> 64",
             "training.gradientCheckpointing: None -> True"],
            id="one rank, which shares nothing and may not offload",
        ),
        pytest.param(
            TRAINING,
            ["training.maxTokensPerMicroBatch=2048", "rollout.sampling.maxNewTokens=1000", "data.maxPromptTokens=24"],
            ["training.maxTokensPerMicroBatch: 2048 -> 1024", "training.gradientCheckpointing: None -> True"],
            id="on CPUs",
        ),
        pytest.param("LostRank", [], [], id="another reason"),
    ],
)  # fmt: skip
def test_changes_come_one_by_one_the_cheapest_first(
    reason: str, settings: Sequence[str], changes: Sequence[str]
) -> None:
    assert ladder(reason, *job(*settings)) == changes


@given(
    gpus=st.sampled_from([1, 2, 4, 8, 16]), per_node=st.sampled_from([1, 2, 4, 8]),
    training=st.none() | st.integers(1, 15), engines=st.none() | st.integers(1, 8),
    stage=st.none() | st.integers(0, 3), several=st.none() | st.integers(1, 4),
    reasons=st.lists(st.sampled_from([ROLLOUT, TRAINING]), max_size=30),
)  # fmt: skip
def test_an_adapted_plan_is_the_plan_of_the_adapted_spec(
    gpus: int, per_node: int, training: int | None, engines: int | None, stage: int | None, several: int | None,
    reasons: Sequence[str],
) -> None:  # fmt: skip
    settings: dict[str, Any] = {
        "cluster": {"gpus": gpus, "gpusPerNode": per_node},
        "placement": {"disaggregated": {"trainingGpus": training}} if training else {"colocated": {}},
        "rollout.enginesPerGpu": engines, "training.zeroStage": stage, "training.gradientAccumulationSteps": several,
    }  # fmt: skip
    document = yaml12.load_file(ROOT / "examples/tiny.yaml")
    for path, value in settings.items():
        if value is not None:
            *sections, name = path.split(".")
            holder = document["spec"]
            for section in sections:
                holder = holder[section]
            holder[name] = value
    if validation.faults(document):
        return
    spec = validation.parse(document).spec
    plan = make_plan(spec)
    changes: list[Adaptation] = []
    for reason in reasons:
        now = adaptations.effective(spec, changes)
        change = adaptations.following(now, adaptations.adapted(plan, now), reason, len(changes) + 2)
        changes += [change] if change is not None else []
    assert len(changes) <= adaptations.MOST
    after = adaptations.effective(spec, changes)
    assert adaptations.adapted(plan, after) == make_plan(after)


def test_a_driver_takes_up_what_has_changed_since_its_run_was_written() -> None:
    spec, plan = job("cluster={gpus: 2}", "placement={colocated: {}}")
    made = run.Run(
        name="a", namespace="b", uid="c", attempt=3, submission_id="a-c-3", spec=spec, plan=plan, output="/d"
    )
    changes = [
        Adaptation(attempt=2, reason=TRAINING, path="training.maxTokensPerMicroBatch", before=32768, to=16384),
        Adaptation(attempt=3, reason=TRAINING, path="training.gradientCheckpointing", to=True),
    ]
    line = run.entrypoint(3, "a-c-3", "a-c-1", changes)
    assert line == (
        "python -m simplerl_trainer.driver /etc/simplerl/run.json --attempt 3 --submission a-c-3"
        " --adapt training.maxTokensPerMicroBatch=16384 --adapt training.gradientCheckpointing=true"
    )
    taken = adaptations.taken_up(made, [word for word in line.split() if "=" in word])
    assert taken.spec.training.gradient_checkpointing is True
    assert taken.plan.max_tokens_per_micro_batch == taken.spec.training.max_tokens_per_micro_batch == 16384
    assert adaptations.taken_up(made, []) is made
    assert run.entrypoint(3, "a-c-3", "a-c-3", changes) == run.ENTRYPOINT, "its own run file has them"


def test_a_change_reads_as_design_has_it() -> None:
    change = Adaptation(attempt=2, reason=ROLLOUT, path="rollout.maxNumBatchedTokens", before=8192, to=4096)
    document = {
        "attempt": 2, "reason": ROLLOUT, "path": "rollout.maxNumBatchedTokens", "from": 8192, "to": 4096,
    }  # fmt: skip
    assert change.document() == document
    assert Adaptation.model_validate(document) == change
