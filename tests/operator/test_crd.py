"""The CRD in a real API server: what is said of wrong jobs at apply, and what stays fixed once a job has started."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.operator import documents
from tests.operator.control_plane import ApiRefusal, ControlPlane

from simplerl_api import validation, yaml12

ROOT = Path(__file__).parents[2]
JOBS = "/apis/simplerl.io/v1alpha1/namespaces"


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Sets a field by its dotted path; None removes it."""
    *parents, last = path.split(".")
    for name in parents:
        document = document[int(name)] if isinstance(document, list) else document.setdefault(name, {})
    if value is None:
        del document[last]
    else:
        document[last] = value


def test_it_is_installed_without_complaint(plane: ControlPlane) -> None:
    crd = plane.find("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/simplerljobs.simplerl.io")
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions


def test_it_is_small_enough_for_client_side_apply() -> None:
    assert len((ROOT / "crds/simplerljobs.yaml").read_bytes()) < 262144


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_accepted(plane: ControlPlane, namespace: str, example: Path) -> None:
    for document in yaml12.load_all(example.read_text()):
        if document["kind"] == "SimpleRLJob":
            document["metadata"].pop("namespace", None)
            plane.apply(f"{JOBS}/{namespace}/simplerljobs/{document['metadata']['name']}", document)


def test_small_numbers_survive(plane: ControlPlane, namespace: str) -> None:
    document = documents.job("small", namespace)
    put(document, "spec.training.actor.learningRate", 5e-7)
    stored = plane.apply(f"{JOBS}/{namespace}/simplerljobs/small", document)
    assert stored["spec"]["training"]["actor"]["learningRate"] == 5e-7


def test_whole_numbers_may_have_a_point(plane: ControlPlane, namespace: str) -> None:
    document = documents.job("whole", namespace)
    put(document, "spec.training.steps", 1e2)
    put(document, "spec.data.promptTemplate", "Q: {question} A:")
    stored = plane.apply(f"{JOBS}/{namespace}/simplerljobs/whole", document)
    assert validation.parse(stored).spec.training.steps == 100


WRONG = [
    ("a misspelt field", "spec.rolout", {}, 'unknown field "spec.rolout"|field not declared in schema'),
    ("a misspelt field further down", "spec.rollout.promptPerStep", 3, "field not declared in schema"),
    ("zero engines", "spec.rollout.engines", 0, r"spec.rollout.engines.*greater than or equal to 1"),
    ("a text for a number", "spec.cluster.gpus", "3", r"spec.cluster.gpus|expected numeric"),
    ("a word that is no choice", "spec.training.precision", "FP8", r"spec.training.precision: Unsupported value"),
    ("two models at once", "spec.model.path", "/models/x", "give exactly one of hub, path, tiny"),
    ("no model", "spec.model", {}, "give exactly one of hub, path, tiny"),
    ("no cluster", "spec.cluster", None, "spec.cluster: Required value"),
    (
        "a batch that does not divide the samples",
        "spec.training.trainBatchSize",
        100,
        "training.trainBatchSize must divide rollout.promptsPerStep x rollout.samplesPerPrompt",
    ),
    (
        "GPUs that do not fill their nodes",
        "spec.cluster",
        {"gpus": 9, "gpusPerNode": 8},
        "cluster.gpus must be a multiple of cluster.gpusPerNode, or smaller",
    ),
    (
        "no GPU left to roll out",
        "spec.placement.disaggregated.trainingGpus",
        3,
        "placement.disaggregated.trainingGpus must be less than cluster.gpus",
    ),
    (
        "a variable that would open the lock",
        "spec.cluster.env",
        [{"name": "RAY_AUTH_MODE", "value": "disabled"}],
        "the operator sets this variable: leave it out",
    ),
    (
        "a temperature that vLLM would change",
        "spec.evaluation",
        {"temperature": 0.001, "datasets": [{"name": "a", "file": "/a.jsonl"}]},
        "evaluation.temperature must be 0 or from 0.01 to 2",
    ),
    (
        "two rewards of one name",
        "spec.rewards",
        [{"name": "a", "math": {}}, {"name": "a", "python": {"file": "/a.py"}}],
        "rewards must have names of their own",
    ),
    (
        "code from two places",
        "spec.rewards",
        [{"name": "a", "python": {"file": "/a.py", "configMap": {"name": "a", "key": "b"}}}],
        "give exactly one of file, configMap",
    ),
    (
        "a scorer of other questions",
        "spec",
        documents.spec(data={"train": {"file": "/a.jsonl"}}, rewards=[{"name": "a", "task": {}}]),
        "a task reward judges only reasoning-gym's own questions",
    ),
    (
        "a scorer of other held-out questions",
        "spec",
        documents.spec(
            rewards=[{"name": "a", "task": {}}], evaluation={"datasets": [{"name": "b", "hub": {"name": "a/b"}}]}
        ),
        "a task reward judges only reasoning-gym's own questions",
    ),
    (
        "two bounds of a micro-batch",
        "spec.training.gradientAccumulationSteps",
        2,
        "give maxTokensPerMicroBatch or gradientAccumulationSteps, not both",
    ),
    (
        "weights on the host without their optimizer",
        "spec.training.offload",
        {"parameters": True},
        "offload.parameters needs offload.optimizer: set that too",
    ),
    (
        "weights on the host that are not shared out",
        "spec.training",
        {"steps": 1, "zeroStage": 2, "offload": {"optimizer": True, "parameters": True}},
        "offload.parameters needs zeroStage 3",
    ),
    (
        "an optimizer on the host without ZeRO",
        "spec.training",
        {"steps": 1, "zeroStage": 0, "offload": {"optimizer": True}},
        "offload.optimizer needs zeroStage 1, 2 or 3",
    ),
    (
        "a reward model that does not see the response",
        "spec.rewards",
        [{"name": "a", "model": {"path": "/m", "template": "{question}"}}],
        "template has no {response} in it",
    ),
    (
        "reward models with dynamic sampling",
        "spec",
        documents.spec(
            rewards=[{"name": "a", "math": {}}, {"name": "b", "model": {"path": "/m"}}],
            algorithm={"dynamicSampling": {"maxRounds": 2}},
        ),
        "a reward model scores samples after they are drawn",
    ),
    ("levels upside down", "spec.data.levels", {"min": 5, "max": 3}, "data.levels.min must not be greater than"),
    ("an address that is none", "spec.rewards", [{"name": "a", "http": {"url": "judge"}}], "should match"),
    (
        "a cut distribution by its share",
        "spec.rollout.sampling.topP",
        0.9,
        "rollout.sampling.topP must be 1 .the training log-probabilities are of the whole distribution",
    ),
    (
        "a cut distribution by its number of tokens",
        "spec.rollout.sampling.topK",
        50,
        "rollout.sampling.topK must be -1 .the training log-probabilities are of the whole distribution",
    ),
    ("engines over three GPUs", "spec.rollout.tensorParallelSize", 3, "tensorParallelSize: Unsupported value"),
    ("two algorithms at once", "spec.algorithm", {"grpo": {}, "rloo": {}}, "give at most one of ppo, grpo, rloo"),
    (
        "groups of one",
        "spec",
        documents.spec(algorithm={"grpo": {}}, rollout={"promptsPerStep": 512, "samplesPerPrompt": 1}),
        "rollout.samplesPerPrompt must be at least 2 where the algorithm compares a prompt's samples",
    ),
    (
        "a group baseline of one",
        "spec",
        documents.spec(
            algorithm={"reinforcePlusPlus": {"groupBaseline": True}},
            rollout={"promptsPerStep": 512, "samplesPerPrompt": 1},
        ),
        "rollout.samplesPerPrompt must be at least 2 where the algorithm compares a prompt's samples",
    ),
    (
        "nothing to adapt",
        "spec.algorithm",
        {"kl": {"coefficient": 0, "adaptive": {"target": 0.1, "horizon": 1000}}},
        "algorithm.kl.adaptive needs a coefficient above 0 to start from",
    ),
    (
        "a buffer longer than the response",
        "spec.algorithm",
        {"overlong": {"bufferTokens": 10000}},
        "algorithm.overlong.bufferTokens must be at most rollout.sampling.maxNewTokens",
    ),
    (
        "a warm-up without an end",
        "spec.training.critic",
        {"warmupSteps": 1000000},
        "training.critic.warmupSteps must be less than training.steps",
    ),
    (
        "drawing ahead on GPUs that train",
        "spec",
        documents.spec(placement={"colocated": {}}, rollout={"promptsPerStep": 64, "overlap": "OneStep"}),
        "rollout.overlap OneStep needs placement.disaggregated: colocated engines sleep while their GPUs train",
    ),
    (
        "engines that come and go with pods of ranks",
        "spec",
        documents.spec(
            placement={"colocated": {}},
            rollout={"promptsPerStep": 64, "elastic": {"minEngines": 1, "maxEngines": 2}},
        ),
        "rollout.elastic needs placement.disaggregated: the pods of colocated engines hold ranks, and cannot go",
    ),
    (
        "more engines at least than at most",
        "spec.rollout",
        {"promptsPerStep": 64, "elastic": {"minEngines": 3, "maxEngines": 2}},
        "rollout.elastic.minEngines must be at most maxEngines",
    ),
    (
        "engines outside of their range",
        "spec.rollout",
        {"promptsPerStep": 64, "engines": 1, "elastic": {"minEngines": 2, "maxEngines": 4}},
        "rollout.engines must be within rollout.elastic",
    ),
    (
        "variance among one",
        "spec",
        documents.spec(
            algorithm={"dynamicSampling": {"maxRounds": 2}}, rollout={"promptsPerStep": 512, "samplesPerPrompt": 1}
        ),
        "algorithm.dynamicSampling needs rollout.samplesPerPrompt of at least 2: one sample has no variance",
    ),
    ("moments that never forget", "spec.training.actor.betas", [0.9, 1], r"betas\[1\].*less than 1"),
    ("a template without its place", "spec.data.promptTemplate", "qwen_boxed", "data.promptTemplate has no .question."),
    (
        "a data set whose name is a path",
        "spec.evaluation",
        {"datasets": [{"name": "a/b", "file": "/a.jsonl"}]},
        r"datasets\[0\].name.*should match",
    ),
    ("a learning rate above one", "spec.training.actor.learningRate", 5, r"learningRate.*less than or equal to 1"),
]


@pytest.mark.parametrize(("path", "value", "message"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_jobs_are_refused_at_apply(
    plane: ControlPlane, namespace: str, path: str, value: Any, message: str
) -> None:
    document = documents.job("wrong", namespace)
    put(document, path, value)
    with pytest.raises(ApiRefusal, match=message):
        plane.apply(f"{JOBS}/{namespace}/simplerljobs/wrong", document)


NAMES = {"too long": "a" * 45, "with a dot": "my.job", "starts with a digit": "1job"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_names_that_pods_cannot_bear_are_refused(plane: ControlPlane, namespace: str, name: str) -> None:
    with pytest.raises(ApiRefusal, match=r"metadata.name must be at most 44 characters of a-z, 0-9 and -"):
        plane.apply(f"{JOBS}/{namespace}/simplerljobs/{name}", documents.job(name, namespace))


def test_the_longest_name_is_accepted(plane: ControlPlane, namespace: str) -> None:
    name = "a" * 44
    plane.apply(f"{JOBS}/{namespace}/simplerljobs/{name}", documents.job(name, namespace))


CHANGES: list[tuple[str, str, Any]] = [
    ("steps", "spec.training.steps", 61),
    ("a setting within the generator's free-form config", "spec.data.train.reasoningGym.config.min_terms", 3),
    ("a new key within it", "spec.data.train.reasoningGym.config.max_terms", 3),
    ("a free-form toleration", "spec.cluster.workers", {"tolerations": [{"key": "a", "operator": "Exists"}]}),
    ("a field that was absent", "spec.rollout.engines", 1),
    ("engines that come and go", "spec.rollout.elastic", {"minEngines": 1, "maxEngines": 1}),
    ("a section that was absent", "spec.evaluation", {"datasets": [{"name": "a", "file": "/a.jsonl"}]}),
    ("a section taken away", "spec.placement", None),
    ("another member of a union", "spec.model", {"path": "/models/x"}),
    ("the image", "spec.cluster.image", "another"),
]

LIVE: list[tuple[str, str, Any]] = [
    ("a deadline", "spec.recovery.stallTimeoutSeconds", 700),
    ("the number of attempts", "spec.recovery.backoffLimit", 9),
    ("the whole job's deadline", "spec.activeDeadlineSeconds", 7000),
    ("the time of the object", "spec.ttlSecondsAfterFinished", 60),
    ("suspension", "spec.suspend", True),
]


@pytest.mark.parametrize(("path", "value"), [c[1:] for c in LIVE], ids=[c[0] for c in LIVE])
def test_live_fields_may_change_while_the_job_runs(plane: ControlPlane, namespace: str, path: str, value: Any) -> None:
    at = f"{JOBS}/{namespace}/simplerljobs/job"
    document = documents.job("job", namespace)
    plane.apply(at, document)
    plane.merge(at + "/status", {"status": {"phase": "Training", "startTime": "2026-01-01T00:00:00Z"}})
    put(document, path, value)
    plane.apply(at, document)


def test_the_cluster_may_change_while_the_job_is_suspended_and_nothing_else(
    plane: ControlPlane, namespace: str
) -> None:
    at = f"{JOBS}/{namespace}/simplerljobs/job"
    document = documents.job("job", namespace)
    plane.apply(at, document)
    plane.merge(at + "/status", {"status": {"phase": "Suspended", "startTime": "2026-01-01T00:00:00Z"}})
    put(document, "spec.cluster.image", "another")
    plane.apply(at, document)
    put(document, "spec.training.steps", 61)
    with pytest.raises(ApiRefusal, match=r"spec\.training is fixed once the job has started"):
        plane.apply(at, document)


@pytest.mark.parametrize(("path", "value"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_the_spec_is_open_before_the_start_and_fixed_after_it(
    plane: ControlPlane, namespace: str, path: str, value: Any
) -> None:
    at = f"{JOBS}/{namespace}/simplerljobs/job"
    document = documents.job("job", namespace)
    plane.apply(at, document)
    changed = copy.deepcopy(document)
    put(changed, path, value)
    plane.apply(at, changed)  # open
    plane.apply(at, document)
    plane.merge(at + "/status", {"status": {"phase": "Provisioning", "startTime": "2026-01-01T00:00:00Z"}})
    section = path.split(".")[1]
    with pytest.raises(ApiRefusal, match=rf"spec\.{section}(\.\w+)? is fixed once the job has started"):
        plane.apply(at, changed)
    plane.apply(at, document)  # the same again is no change
    plane.merge(at, {"metadata": {"labels": {"team": "a"}}})


SEVERAL: list[tuple[dict[str, Any], str]] = [
    (
        {"spec.training.steps": 61, "spec.model": {"path": "/m"}, "spec.rollout.samplesPerPrompt": 16,
         "spec.suspend": True},
        "spec: Forbidden: spec.model, spec.training, spec.rollout.samplesPerPrompt are fixed once the job has started:"
        " delete the job, or create another one beside it",
    ),
    (
        {"spec.rollout.sampling.temperature": 0.5, "spec.cluster.image": "b"},
        "[spec: Forbidden: spec.rollout.sampling is fixed once the job has started: delete the job, or create another"
        " one beside it, spec.cluster: Forbidden: spec.cluster is fixed once the job has started: suspend the job to"
        " change it]",
    ),
    (
        {"spec.rollout": None, "spec.training.trainBatchSize": 1},
        "spec: Forbidden: spec.training, spec.rollout are fixed once the job has started: delete the job, or create"
        " another one beside it",
    ),
    (
        {"spec.rollout.engines": 1},
        "spec.rollout.engines: Forbidden: spec.rollout.engines is fixed once the job has started, but from 1 to"
        " status.plan.engines where placement is disaggregated",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), SEVERAL)
def test_all_that_may_not_change_is_named(
    plane: ControlPlane, namespace: str, changes: dict[str, Any], sentence: str
) -> None:
    at = f"{JOBS}/{namespace}/simplerljobs/job"
    document = documents.job("job", namespace, placement={"colocated": {}})
    plane.apply(at, document)
    plane.merge(at + "/status", {"status": {"phase": "Training", "startTime": "2026-01-01T00:00:00Z"}})
    for path, value in changes.items():
        put(document, path, value)
    with pytest.raises(ApiRefusal) as refusal:
        plane.request("PUT", at, {**document, "metadata": plane.find(at)["metadata"]})
    assert str(refusal.value) == f'422: SimpleRLJob.simplerl.io "job" is invalid: {sentence}'


STORED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a reward's weight", {"rewards": [{"name": "sum", "weight": 1.0, "math": {}}]},
     {"rewards": [{"name": "sum", "weight": 2.0, "math": {}}]}),
    ("an empty variable", {"cluster": {"env": [{"name": "A", "value": ""}]}},
     {"cluster": {"env": [{"name": "A", "value": "b"}]}}),
    ("a volume that is only read", {"cluster": {"volumes": [{"mountPath": "/m", "claimName": "m", "readOnly": True}]}},
     {"cluster": {"volumes": [{"mountPath": "/m", "claimName": "m", "readOnly": False}]}}),
    ("another volume", {"cluster": {"volumes": [{"mountPath": "/m", "claimName": "m", "readOnly": True}]}},
     {"cluster": {"volumes": [{"mountPath": "/m", "claimName": "n"}]}}),
    ("one volume more", {"cluster": {"volumes": [{"mountPath": "/m", "claimName": "m", "readOnly": True}]}},
     {"cluster": {"volumes": [{"mountPath": f"/{n}", "claimName": n} for n in "mn"]}}),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "other"), [s[1:] for s in STORED], ids=[s[0] for s in STORED])
def test_a_default_that_was_once_stored_is_as_good_as_none(
    plane: ControlPlane, namespace: str, stored: dict[str, Any], other: dict[str, Any]
) -> None:
    """The first CRD wrote defaults into lists: the same manifest, applied again after an upgrade, is no change."""

    def document(sections: dict[str, Any], *, bare: bool = False) -> dict[str, Any]:
        made = documents.job("job", namespace, rewards=sections.get("rewards", documents.TINY["rewards"]))
        made["spec"]["cluster"] |= sections.get("cluster", {})
        for item in (i for s in (made["spec"]["rewards"], *made["spec"]["cluster"].values()) if isinstance(s, list)
                     for i in s if bare):  # fmt: skip
            for name in ("weight", "readOnly", "value"):
                item.pop(name, None)
        return made

    at = f"{JOBS}/{namespace}/simplerljobs/job"
    plane.apply(at, document(stored))
    plane.merge(at + "/status", {"status": {"phase": "Training", "startTime": "2026-01-01T00:00:00Z"}})
    plane.apply(at, document(copy.deepcopy(stored), bare=True))
    plane.apply(at, document(stored))
    with pytest.raises(ApiRefusal, match=r"is fixed once the job has started"):
        plane.apply(at, document(other))


STATUSES: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("an unknown status field", lambda status: status.update(surprise=1)),
    ("an unknown phase", lambda status: status.update(phase="Dreaming")),
]


@pytest.mark.parametrize("change", [s[1] for s in STATUSES], ids=[s[0] for s in STATUSES])
def test_the_status_is_checked_too(
    plane: ControlPlane, namespace: str, change: Callable[[dict[str, Any]], None]
) -> None:
    at = f"{JOBS}/{namespace}/simplerljobs/job"
    document = documents.job("job", namespace)
    plane.apply(at, document)
    status: dict[str, Any] = {"phase": "Pending"}
    change(status)
    body = {k: document[k] for k in ("apiVersion", "kind", "metadata")} | {"status": status}
    with pytest.raises(ApiRefusal):
        plane.apply(at + "/status", body)


def defaults_in_lists(schema: dict[str, Any], path: str, inside: bool = False) -> Iterator[str]:
    if inside and "default" in schema:
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from defaults_in_lists(inner, f"{path}.{name}", inside)
    if isinstance(items := schema.get("items"), dict):
        yield from defaults_in_lists(items, f"{path}[]", True)


def test_no_default_stands_inside_a_list() -> None:
    schema = yaml12.load((ROOT / "crds/simplerljobs.yaml").read_text())["spec"]["versions"][0]["schema"]
    assert list(defaults_in_lists(schema["openAPIV3Schema"]["properties"]["spec"], "spec")) == []
    list_of_one = {"items": {"properties": {"a": {"default": 1}}}}
    assert list(defaults_in_lists(list_of_one, "x")) == ["x[].a"]
