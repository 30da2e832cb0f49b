"""A run in a folder: made once, taken up again, never mixed with another."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from simplerl_api import overrides, run, validation, yaml12
from simplerl_api.spec.job import Spec
from simplerl_api.struct import model_in
from simplerl_trainer import local

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"


def document(*settings: str) -> dict[str, Any]:
    return overrides.apply(yaml12.load_file(TINY), settings)


def test_the_folder_is_made_with_the_run_in_it(tmp_path: Path) -> None:
    made = local.prepare(document(), tmp_path / "a/b", own_ray=True)
    assert run.read(tmp_path / "a/b/run.json") == made
    assert made.output == str(tmp_path / "a/b")
    assert (made.name, made.namespace, made.attempt) == ("tiny", "local", 1)
    assert made.submission_id.startswith("tiny-")
    assert made.submission_id.endswith("-1")
    assert made.progress_port == 0, "any free port"


def test_a_folder_is_as_durable_as_a_claim(tmp_path: Path) -> None:
    assert local.prepare(document("checkpoint={}"), tmp_path / "run", own_ray=True).plan.durable


def test_the_same_file_goes_on_as_the_next_attempt(tmp_path: Path) -> None:
    first, second, third = (local.prepare(document(), tmp_path, own_ray=True) for _ in range(3))
    assert [r.attempt for r in (first, second, third)] == [1, 2, 3]
    assert [r.submission_id.removeprefix(first.submission_id[:-1]) for r in (first, second, third)] == ["1", "2", "3"]
    assert first.model_copy(update={"attempt": 3, "submission_id": third.submission_id}) == third
    assert run.read(tmp_path / "run.json") == third


def test_what_the_folder_is_called_by_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = local.prepare(document(), Path("run"), own_ray=True)
    assert local.prepare(document(), tmp_path / "x/../run", own_ray=True).uid == first.uid
    assert local.prepare(document(), tmp_path / "other", own_ray=True).uid != first.uid


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        pytest.param(["training.steps=3"], "spec.training", id="a field that is changed"),
        pytest.param(["rollout.sampling.temperature=0.5"], "spec.rollout", id="a field that is added"),
        pytest.param(["evaluation="], "spec.evaluation", id="a section that is gone"),
        pytest.param(["training.seed=7", "model.tiny.seed=7"], "spec.model, spec.training", id="two sections"),
    ],
)
def test_another_spec_is_refused_and_names(tmp_path: Path, settings: Sequence[str], changed: str) -> None:
    other = document(*settings)
    if settings == ["evaluation="]:
        del other["spec"]["evaluation"]
    local.prepare(document(), tmp_path, own_ray=True)
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(local.OtherRun) as refused:
        local.prepare(other, tmp_path, own_ray=True)
    assert str(refused.value) == (
        f"--output {tmp_path} holds a run whose {changed} differs from this file's: "
        "choose another folder, or remove that one"
    )
    assert (tmp_path / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(["placement.disaggregated.trainingGpus=1", "cluster.gpus=2"], id="ranks"),
        pytest.param(["placement={colocated: {}}", "rollout.enginesPerGpu=2"], id="engines"),
        pytest.param(["training.zeroStage=1", "training.maxTokensPerMicroBatch=2048"], id="the ZeRO stage"),
        pytest.param(["checkpoint.keep=9", "recovery.stallTimeoutSeconds=60"], id="what is kept"),
    ],
)
def test_a_run_goes_on_with_other(tmp_path: Path, settings: Sequence[str]) -> None:
    first = local.prepare(document(), tmp_path, own_ray=True)
    second = local.prepare(document(*settings), tmp_path, own_ray=True)
    assert second.attempt == 2
    assert second.spec != first.spec
    assert run.read(tmp_path / "run.json") == second


def test_the_fields_that_may_change_are_fields_of_the_spec() -> None:
    for path in local.MAY_CHANGE:
        model: Any = Spec
        for name in path.split("."):
            field = next(f for n, f in model.model_fields.items() if name in (n, f.alias))
            model = model_in(field.annotation)


def test_a_spec_that_only_says_what_holds_anyway_is_the_same_run(tmp_path: Path) -> None:
    local.prepare(document(), tmp_path, own_ray=True)
    assert (
        local.prepare(
            document("recovery={}", "checkpoint.keep=3", "rewards[0].weight=1.0"), tmp_path, own_ray=True
        ).attempt
        == 2
    )


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        pytest.param(["training.steps=-1"], "spec.training.steps is -1", id="a value out of its bounds"),
        pytest.param(["training.trainBatchSize=100"], "spec.training.trainBatchSize is 100", id="no plan"),
        pytest.param(["cluster.gpusPerNode=65"], "spec.cluster.gpusPerNode is 65", id="a node too large"),
        pytest.param(["metadata.name=Tiny"], "metadata.name is Tiny", id="a name"),
    ],
)
def test_an_invalid_job_leaves_no_folder(tmp_path: Path, settings: Sequence[str], fault: str) -> None:
    with pytest.raises(validation.InvalidJob) as refused:
        local.prepare(document(*settings), tmp_path / "run", own_ray=True)
    assert [f for f in refused.value.faults if f.startswith(fault)]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("own_ray", "nodes", "per_node"),
    [
        pytest.param(True, 1, 3, id="one machine stands for all nodes"),
        pytest.param(False, 3, 1, id="a Ray cluster has the nodes of the file"),
    ],
)
def test_nodes(tmp_path: Path, own_ray: bool, nodes: int, per_node: int) -> None:
    made = local.prepare(document(), tmp_path, own_ray=own_ray)
    assert (made.plan.nodes, made.plan.gpus_per_node, made.plan.ranks, made.plan.engines) == (nodes, per_node, 2, 1)
    assert made.spec.cluster.gpus_per_node == per_node


@pytest.mark.parametrize(
    ("gpus", "nodes", "per_node"),
    [(64, 1, 64), (65, 5, 13), (100, 2, 50), (128, 2, 64), pytest.param(67, 67, 1, id="a prime number")],
)
def test_more_slots_than_a_node_may_have_are_as_few_nodes_as_can_be(
    tmp_path: Path, gpus: int, nodes: int, per_node: int
) -> None:
    made = local.prepare(document(f"cluster.gpus={gpus}"), tmp_path, own_ray=True)
    assert (made.plan.nodes, made.plan.gpus_per_node) == (nodes, per_node)


ELASTIC = [
    "cluster.gpus=4", "training.deterministic=false", "rollout.elastic={minEngines: 1, maxEngines: 4}",
]  # fmt: skip


@pytest.mark.parametrize(
    ("own_ray", "nodes"), [pytest.param(True, 1, id="one machine"), pytest.param(False, 4, id="a Ray cluster")]
)
def test_outside_of_kubernetes_engines_that_may_come_and_go_all_stay(tmp_path: Path, own_ray: bool, nodes: int) -> None:
    made = local.prepare(document(*ELASTIC), tmp_path / "run", own_ray=own_ray)
    assert (made.plan.nodes, made.plan.engines, made.plan.min_engines) == (nodes, 4, None)
    again = local.prepare(document("cluster.gpus=4", "training.deterministic=false"), tmp_path / "run", own_ray=own_ray)
    assert (again.attempt, again.plan.engines) == (2, 2), "where a run is computed may change"


def test_what_no_cluster_would_run_is_refused_on_one_machine_too(tmp_path: Path) -> None:
    with pytest.raises(validation.InvalidJob, match=r"rollout\.elastic needs placement\.disaggregated"):
        local.prepare(document(*ELASTIC, "placement={colocated: {}}"), tmp_path / "run", own_ray=True)


SPANNING = ["placement={colocated: {}}", "cluster.gpus=2", "rollout.tensorParallelSize=2"]


def test_an_engine_may_span_what_would_be_two_nodes_of_a_cluster(tmp_path: Path) -> None:
    made = local.prepare(document(*SPANNING), tmp_path / "run", own_ray=True)
    assert (made.plan.nodes, made.plan.engines) == (1, 1)
    with pytest.raises(validation.InvalidJob, match=r"rollout\.tensorParallelSize is 2, which does not divide"):
        local.prepare(document(*SPANNING), tmp_path / "elsewhere", own_ray=False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"name": "tiny", "names', id="cut short"),
        pytest.param(json.dumps({"name": "tiny", "spec": {}}), id="of another version"),
    ],
)
def test_a_run_file_that_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(local.OtherRun) as refused:
        local.prepare(document(), tmp_path, own_ray=True)
    assert str(refused.value) == (
        f"--output {tmp_path} holds a run.json that this version cannot read: choose another folder, or remove that one"
    )


def test_an_output_that_is_a_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(local.OtherRun, match=r"^--output .*/file cannot be written \(File exists\): choose"):
        local.prepare(document(), tmp_path / "file", own_ray=True)


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        pytest.param(
            ["notes.txt"],
            "holds notes.txt, but no run (run.json): choose an empty folder or one that is not there yet",
            id="a file",
        ),
        pytest.param(
            ["b", ".git/config", "lost+found/x"],
            "holds .git and 1 more, but no run (run.json): choose an empty folder or one that is not there yet",
            id="several",
        ),
        pytest.param(
            ["checkpoints/step-000004/manifest.json", "metrics.jsonl"],
            "holds checkpoints of a run that did not begin here (there is no run.json): choose another folder, and "
            "name this one in checkpoint.resumeFrom to go on from there",
            id="a run of a cluster",
        ),
    ],
)
def test_a_folder_of_something_else_is_refused_and_stays(tmp_path: Path, there: Sequence[str], sentence: str) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(local.OtherRun) as refused:
        local.prepare(document(), tmp_path, own_ray=True)
    assert str(refused.value) == f"--output {tmp_path} {sentence}"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(["lost+found"], id="a new file system"),
        pytest.param(["run.partial"], id="a run that was killed at its start"),
    ],
)
def test_a_folder_as_good_as_empty_takes_a_run(tmp_path: Path, there: Sequence[str]) -> None:
    for name in there:
        (tmp_path / name).mkdir() if name == "lost+found" else (tmp_path / name).write_text("{")
    assert local.prepare(document(), tmp_path, own_ray=True).attempt == 1
