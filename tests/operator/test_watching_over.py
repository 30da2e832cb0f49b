"""What watches over the operator itself: the Lease, the watches, the clock, its metrics."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio import client, config
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane

from simplerl_api.status import Phase
from simplerl_operator import kubernetes_api, lease
from simplerl_operator.kinds import CONFIG_MAP, JOB, POD, RAY_CLUSTER
from simplerl_operator.kubernetes_api import KubernetesApi, NotOurs
from simplerl_operator.lease import Sight
from simplerl_operator.metrics import Metrics
from simplerl_operator.steady_clock import SteadyClock
from simplerl_operator.watches import Watches

AT = datetime(2026, 11, 30, 12, 0, 0, 250_000, UTC)
EARLIER = "2026-11-30T11:00:00.000000Z"


def held_by(holder: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": "7"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, **spec},
    }


FREE = [
    ("nobody's is free", held_by(""), 0.0, True),
    ("a new one without a spec is free", {"metadata": {}}, 0.0, True),
    ("our own is free, as a container that came back in its pod finds it", held_by("us"), 0.0, True),
    ("another's is not", held_by("them"), 14.9, False),
    ("another's is, once it stood unchanged for as long as was promised", held_by("them"), 15.0, True),
    ("the promise is its holder's", held_by("them", leaseDurationSeconds=60), 59.0, False),
]


@pytest.mark.parametrize(("document", "unchanged", "expected"), [f[1:] for f in FREE], ids=[f[0] for f in FREE])
def test_whether_a_lease_may_be_taken(document: dict[str, Any], unchanged: float, expected: bool) -> None:
    assert lease.free(document, Sight("7", 100.0), "us", 100.0 + unchanged) is expected


TAKEN = [
    ("renewed", held_by("us", acquireTime=EARLIER, leaseTransitions=3), EARLIER, 3),
    ("taken over", held_by("them", acquireTime=EARLIER, leaseTransitions=3), "2026-11-30T12:00:00.250000Z", 4),
    ("new", {"metadata": {}}, "2026-11-30T12:00:00.250000Z", 1),
]


@pytest.mark.parametrize(("document", "since", "transitions"), [t[1:] for t in TAKEN], ids=[t[0] for t in TAKEN])
def test_a_lease_in_our_hands(document: dict[str, Any], since: str, transitions: int) -> None:
    out = lease.taken(document, "us", AT)
    assert out["metadata"] == document["metadata"], "the resourceVersion goes back with it"
    assert out["spec"] == {
        "holderIdentity": "us", "leaseDurationSeconds": 15, "acquireTime": since,
        "renewTime": "2026-11-30T12:00:00.250000Z", "leaseTransitions": transitions,
    }  # fmt: skip


def test_without_the_lease_nothing_is_written() -> None:
    api = KubernetesApi.__new__(KubernetesApi)
    api.guard(lambda: False)
    with pytest.raises(NotOurs, match="the Lease is not ours: nothing is written"):
        api.assure_writer()


def test_a_watch_that_tells_everything_is_well() -> None:
    watches = Watches(patience=60)
    watches.hear("pods", "a", "1", gone=False)
    watches.compare("pods", {"a": "1"}, 0)
    assert watches.deaf(1000) is None


def test_a_watch_that_missed_a_change_is_deaf_after_a_while_and_named() -> None:
    watches = Watches(patience=60)
    watches.hear("pods", "a", "1", gone=False)
    watches.ask("pods")
    watches.compare("pods", {"a": "2"}, 10)
    assert watches.deaf(70) is None
    assert watches.deaf(71) == "the watch of pods is deaf: a list showed 61 s ago what it has not told yet"
    watches.compare("pods", {"a": "3"}, 80)
    assert watches.deaf(81) == "the watch of pods is deaf: a list showed 71 s ago what it has not told yet"


def test_a_watch_that_was_just_slow_is_well_again() -> None:
    watches = Watches(patience=60)
    watches.compare("pods", {"a": "2", "b": "1"}, 0)
    watches.hear("pods", "a", "2", gone=False)
    watches.hear("pods", "b", "1", gone=True)
    assert watches.deaf(1000) is None


def test_what_changed_while_a_list_was_under_way_was_not_missed() -> None:
    watches = Watches(patience=60)
    for uid in ("a", "b"):
        watches.hear("pods", uid, "1", gone=False)
    watches.ask("pods")
    watches.hear("pods", "a", "2", gone=False)
    watches.hear("pods", "b", "2", gone=True)
    watches.compare("pods", {"a": "1", "b": "1"}, 0)
    assert watches.deaf(1000) is None, "they were heard after the list was made"
    watches.ask("pods")
    watches.compare("pods", {"a": "3"}, 300)
    assert watches.deaf(1000) is not None


async def test_a_list_of_nothing_is_empty(plane: ControlPlane, namespace: str) -> None:
    # the API server answers "items": null; the loop that lists the jobs ended by it where there was no job
    configuration = client.Configuration()
    await config.load_kube_config(str(plane.kubeconfig(ADMIN_TOKEN)), client_configuration=configuration)
    api = KubernetesApi(configuration)
    try:
        for kind in (JOB, RAY_CLUSTER, POD):
            assert await api.listed(kind, namespace) == []
            assert await api.list(kind, namespace) == []
    finally:
        await api.close()


async def test_a_list_of_many_is_whole_page_by_page(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in one answer a thousand whole jobs took the operator from 139 to 229 MB
    monkeypatch.setattr(kubernetes_api, "_PAGE", 2)
    for i in range(5):
        plane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": f"c-{i}"}})
    configuration = client.Configuration()
    await config.load_kube_config(str(plane.kubeconfig(ADMIN_TOKEN)), client_configuration=configuration)
    api = KubernetesApi(configuration)
    try:
        assert [(c.namespace, c.name) for c in await api.listed(CONFIG_MAP, namespace)] == [
            (namespace, f"c-{i}") for i in range(5)
        ]
    finally:
        await api.close()


def test_what_is_gone_is_forgotten() -> None:
    watches = Watches()
    watches.compare("pods", {"a": "1"}, 0)
    watches.compare("pods", {}, 5)
    assert watches.deaf(1000) is None
    watches.hear("pods", "b", "1", gone=False)
    watches.compare("pods", {}, 10)
    watches.compare("pods", {}, 15)
    watches.ask("pods")
    watches.compare("pods", {"b": "1"}, 20)
    assert watches.deaf(1000) is not None, "what two lists lacked was forgotten, so that nothing gathers"


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1e6, 1e6)), max_size=30))
def test_a_clock_that_is_set_anew_neither_leaps_nor_goes_back(steps: list[tuple[float, float]]) -> None:
    now, jump = 0.0, 0.0
    clock = SteadyClock(lambda: 1e9 + now + jump, lambda: now)
    for passed, jumped in steps:
        before = clock()
        now, jump = now + passed, jump + jumped
        assert 0.9 * passed - 1e-3 <= clock() - before <= 1.1 * passed + 1e-3


def test_a_clock_that_was_wrong_is_right_in_the_end() -> None:
    now, wrong = 0.0, 0.0
    clock = SteadyClock(lambda: 1e9 + now + wrong, lambda: now)
    wrong = 60.0
    for _ in range(700):
        now += 1
        clock()
    assert clock() == pytest.approx(1e9 + 60 + now)


def test_series_go_with_their_jobs() -> None:
    metrics = Metrics()
    metrics.seen(("team-a", "x"), Phase.TRAINING)
    metrics.seen(("team-a", "y"), Phase.TRAINING)
    metrics.seen(("team-b", "z"), Phase.FAILED)
    assert jobs(metrics) == [
        'simplerl_jobs{namespace="team-a",phase="Training"} 2.0',
        'simplerl_jobs{namespace="team-b",phase="Failed"} 1.0',
    ]
    metrics.seen(("team-b", "z"), None)
    metrics.seen(("team-a", "y"), Phase.SUCCEEDED)
    assert jobs(metrics) == [
        'simplerl_jobs{namespace="team-a",phase="Succeeded"} 1.0',
        'simplerl_jobs{namespace="team-a",phase="Training"} 1.0',
    ]


def jobs(metrics: Metrics) -> list[str]:
    return [line for line in metrics.text().decode().splitlines() if line.startswith("simplerl_jobs{")]


def test_calls_of_the_api_server_are_counted_by_what_they_are() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.called("patch", "simplerljobs", "200")
    metrics.called("get", "rayclusters", "none")
    text = metrics.text().decode()
    assert 'simplerl_api_requests_total{code="200",resource="simplerljobs",verb="patch"} 2.0' in text
    assert 'simplerl_api_requests_total{code="none",resource="rayclusters",verb="get"} 1.0' in text
