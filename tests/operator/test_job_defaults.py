"""The chart's jobDefaults: from the operator's settings into plan and pods, where a job leaves fields out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator import documents
from tests.operator.observations import NOW, UID, job, seen, started

from simplerl_api.job_defaults import JobDefaults
from simplerl_api.plan import make_plan
from simplerl_api.spec.cluster import Cluster
from simplerl_api.validation import parse_spec
from simplerl_operator import settings
from simplerl_operator.build.ray_cluster import ray_cluster
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe import job as jobs
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.observation import Inputs

GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}
TEAM_TAINT = {"key": "team", "value": "a"}
DEFAULTS = {
    "imageMirror": "mirror.example/hub",
    "imagePullSecrets": [{"name": "mirror"}],
    "priorityClassName": "training",
    "schedulerName": "volcano",
    "perGpu": {"cpu": "12", "memory": "100.5Gi"},
    "head": {"nodeSelector": {"pool": "cpu"}},
    "workers": {"nodeSelector": {"pool": "gpu", "zone": "a"}, "tolerations": [GPU_TAINT]},
}
GPUS = {"gpus": 16, "gpusPerNode": 8}


def read(cluster: dict[str, Any], defaults: dict[str, Any] = DEFAULTS, status: dict[str, Any] | None = None) -> Job:
    metadata = {"name": "tiny", "namespace": "team-a", "uid": UID, "generation": 1, "resourceVersion": "7"}
    spec = documents.spec(cluster=cluster, placement=None, model={"path": "/models/m"})
    document = {"metadata": metadata, "spec": json.loads(json.dumps(spec)), "status": status or {}}
    return jobs.read(document, "registry.example:5000/trainer:1", JobDefaults.model_validate(defaults))


def pods(given: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = ray_cluster(given)["spec"]
    return spec["headGroupSpec"]["template"]["spec"], spec["workerGroupSpecs"][0]["template"]["spec"]


def test_a_job_that_says_nothing_gets_them_all() -> None:
    head, worker = pods(read(GPUS))
    for pod in (head, worker):
        assert pod["containers"][0]["image"] == "mirror.example/hub/trainer:1"
        assert pod["imagePullSecrets"] == [{"name": "mirror"}]
        assert pod["priorityClassName"] == "training"
        assert pod["schedulerName"] == "volcano"
    assert head["nodeSelector"] == {"pool": "cpu"}
    assert "tolerations" not in head
    assert worker["nodeSelector"] == {"pool": "gpu", "zone": "a"}
    assert worker["tolerations"] == [GPU_TAINT]
    assert worker["containers"][0]["resources"] == {
        "requests": {"cpu": "96", "memory": "804Gi", "nvidia.com/gpu": "8"},
        "limits": {"memory": "1608Gi", "nvidia.com/gpu": "8"},
    }


def test_what_the_job_says_wins() -> None:
    mine = {
        **GPUS,
        "image": "mirror.example/hub/mine:2",
        "imagePullSecrets": [{"name": "own"}],
        "priorityClassName": "low",
        "schedulerName": "kai",
        "workers": {
            "nodeSelector": {"pool": "h200"},
            "tolerations": [TEAM_TAINT, GPU_TAINT],
            "resources": {"requests": {"cpu": "4"}},
        },
    }
    _, worker = pods(read(mine))
    assert worker["containers"][0]["image"] == "mirror.example/hub/mine:2"
    assert worker["imagePullSecrets"] == [{"name": "own"}]
    assert worker["priorityClassName"] == "low"
    assert worker["schedulerName"] == "kai"
    assert worker["nodeSelector"] == {"pool": "h200", "zone": "a"}
    assert worker["tolerations"] == [TEAM_TAINT, GPU_TAINT]
    assert worker["containers"][0]["resources"]["requests"] == {"cpu": "4", "nvidia.com/gpu": "8"}


def test_without_gpus_the_stated_requests_stay() -> None:
    _, worker = pods(read({"gpus": 2, "gpusPerNode": 1, "cpuOnly": True}))
    assert worker["containers"][0]["resources"] == {
        "requests": {"cpu": "200m", "memory": "1Gi"},
        "limits": {"memory": "4Gi"},
    }


IMAGES = [
    ("trainer:1", "mirror.example/hub/trainer:1"),
    ("team/trainer:1", "mirror.example/hub/team/trainer:1"),
    ("other.example/team/trainer:1", "mirror.example/hub/team/trainer:1"),
    ("localhost/trainer", "mirror.example/hub/trainer"),
    ("registry:5000/trainer@sha256:ab", "mirror.example/hub/trainer@sha256:ab"),
    ("mirror.example/hub/trainer:1", "mirror.example/hub/trainer:1"),
]


@pytest.mark.parametrize(("name", "pulled"), IMAGES, ids=[i[0] for i in IMAGES])
def test_images_come_through_the_mirror(name: str, pulled: str) -> None:
    assert JobDefaults(image_mirror="mirror.example/hub").image(name) == pulled
    assert JobDefaults().image(name) == name


def test_the_plan_records_them_and_keeps_them_when_the_operator_is_given_others() -> None:
    fresh = read(GPUS)
    status = compose(seen(job=fresh, inputs=Inputs()), decide(seen(job=fresh, inputs=Inputs()), NOW), NOW)
    assert status.plan is not None
    assert status.document()["plan"]["jobDefaults"]["workers"] == DEFAULTS["workers"]
    later = read(GPUS, {"priorityClassName": "other"}, status=status.document())
    assert pods(later) == pods(fresh)


def test_a_plan_made_before_there_were_defaults_has_none() -> None:
    _, worker = pods(read(GPUS, status=started(plan=_old_plan())))
    assert worker["containers"][0]["image"] == "registry.example/old:1"
    assert {"imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName"}.isdisjoint(worker)


def _old_plan() -> dict[str, Any]:
    spec = parse_spec(documents.spec(cluster=GPUS, placement=None, model={"path": "/models/m"}))
    return make_plan(spec, "registry.example/old:1").document()


def test_a_job_without_defaults_has_a_plan_without_them() -> None:
    plan = job().plan
    assert plan is not None
    assert "jobDefaults" not in plan.document()


WORDS = st.sampled_from(["a", "b", "c"])
WHERE = st.fixed_dictionaries(
    {
        "nodeSelector": st.dictionaries(WORDS, WORDS, max_size=3),
        "tolerations": st.lists(st.fixed_dictionaries({"key": WORDS}), max_size=3, unique_by=lambda t: t["key"]),
    }
)


@given(mine=WHERE, defaults=WHERE)
def test_defaults_add_and_never_take_away(mine: dict[str, Any], defaults: dict[str, Any]) -> None:
    cluster = Cluster.model_validate({"gpus": 1, "workers": mine})
    team = JobDefaults.model_validate({"workers": defaults})
    once = team.cluster(cluster)
    where = once.workers
    assert where.node_selector == {**defaults["nodeSelector"], **mine["nodeSelector"]}
    assert where.tolerations[: len(mine["tolerations"])] == mine["tolerations"]
    assert all(toleration in where.tolerations for toleration in defaults["tolerations"])
    assert team.cluster(once) == once
    assert JobDefaults().cluster(cluster) == cluster


BASE = {"SIMPLERL_TRAINER_IMAGE": "t:1"}
WRONG = [
    ("{", "SIMPLERL_JOB_DEFAULTS is no JSON: Expecting property name enclosed in double quotes"),
    ('{"prioritClassName":"x"}', 'unknown field "jobDefaults.prioritClassName": did you mean priorityClassName?'),
    ('{"perGpu":{"cpu":"many"}}', "jobDefaults.perGpu.cpu is 'many': string should match pattern"),
    ("[]", "jobDefaults is []: it should be an object"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong_defaults_stop_the_operator_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(settings.InvalidSettings) as caught:
        settings.read({**BASE, "SIMPLERL_JOB_DEFAULTS": text})
    assert message in str(caught.value)


def test_the_settings_read_them() -> None:
    given = settings.read({**BASE, "SIMPLERL_JOB_DEFAULTS": json.dumps(DEFAULTS)}).job_defaults
    assert given == JobDefaults.model_validate(DEFAULTS)
    assert settings.read(BASE).job_defaults is None
