"""What becomes of a RayCluster is asked before a job is fixed, and of equal ones once."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.aio import client, config
from tests.operator import observations
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane

from simplerl_operator.kubernetes_api import KubernetesApi
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.rehearsal import Rehearsals


class Place:
    """A namespace, an API client that counts, and a clock that goes as it is told."""

    def __init__(self, plane: ControlPlane, api: KubernetesApi, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.now = 0.0
        self.asked: list[str] = []
        api.count(lambda verb, resource, code: self.asked.append(f"{verb} {resource} {code}"))
        self.rehearsals = Rehearsals(api, lambda: self.now)

    def job(self, name: str, uid: str, **sections: Any) -> Job:
        return replace(observations.job(**sections), name=name, uid=uid, namespace=self.namespace)


@pytest.fixture
async def place(plane: ControlPlane, namespace: str) -> AsyncIterator[Place]:
    configuration = client.Configuration()
    await config.load_kube_config(  # type: ignore[no-untyped-call]
        str(plane.kubeconfig(ADMIN_TOKEN)), client_configuration=configuration
    )
    api = KubernetesApi(configuration)
    yield Place(plane, api, namespace)
    await api.close()


async def test_jobs_that_differ_in_their_names_alone_are_rehearsed_once(place: Place) -> None:
    for i in range(5):
        assert await place.rehearsals.rejection(place.job(f"job-{i}", f"{i}" * 36)) is None
    assert place.asked == ["create rayclusters 201"]
    await place.rehearsals.rejection(place.job("job-0", "0" * 36, cluster={"gpus": 1, "cpuOnly": True}, placement=None))
    assert len(place.asked) == 2, "another shape is another question"
    place.now = 29.0
    await place.rehearsals.rejection(place.job("late", "6" * 36))
    assert len(place.asked) == 2
    place.now = 31.0
    await place.rehearsals.rejection(place.job("later", "7" * 36))
    assert len(place.asked) == 3, "an answer holds for half a minute"


async def test_a_refusal_is_asked_for_again(place: Place) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/rayclusters.ray.io": "0"}}}
    at = f"/api/v1/namespaces/{place.namespace}/resourcequotas"
    place.plane.request("POST", at, quota)
    place.plane.merge(f"{at}/none/status", {"status": {"hard": {"count/rayclusters.ray.io": "0"}, "used": {
        "count/rayclusters.ray.io": "0"}}})  # fmt: skip
    for _ in range(2):
        said = await place.rehearsals.rejection(place.job("job", "1" * 36))
        assert said is not None
        assert "exceeded quota: none, requested: count/rayclusters.ray.io=1" in said
    place.plane.request("DELETE", f"{at}/none")
