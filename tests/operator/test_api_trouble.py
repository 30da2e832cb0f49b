"""An API server in trouble, and operators that must not write: nothing is lost, nothing is asked in a hot loop."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.operator import documents
from tests.operator.control_plane import OPERATOR_TOKEN, ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import ROOT, OperatorProcess
from tests.operator.proxy import Proxy


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[Proxy]:
    server = Proxy(plane)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def alone(operator: OperatorProcess) -> Iterator[None]:
    """No other operator runs."""
    operator.stop()
    yield
    operator.start()


def behind(proxy: Proxy, plane: ControlPlane, heads: Heads, folder: Path, **environment: str) -> OperatorProcess:
    """An operator that reaches the API server through a proxy."""
    folder.mkdir()
    environment["KUBECONFIG"] = str(proxy.kubeconfig(folder, OPERATOR_TOKEN))
    return OperatorProcess(plane, folder, f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}", **environment)


@pytest.fixture
def troubled(plane: ControlPlane, heads: Heads, proxy: Proxy, alone: None, tmp_path: Path) -> Iterator[OperatorProcess]:
    process = behind(proxy, plane, heads, tmp_path / "troubled")
    try:
        process.start()
        yield process
    finally:
        process.stop()


def test_an_operator_that_starts_lists_page_by_page(proxy: Proxy, troubled: OperatorProcess) -> None:
    def listed() -> dict[str, bool]:
        urls = [urlsplit(a.path) for a in proxy.asked if a.by_kopf and not a.watch]
        return {url.path.rpartition("/")[2]: "limit=100" in url.query.split("&") for url in urls}

    kinds = ("simplerljobs", "rayclusters", "pods")
    found = eventually("the first lists", lambda: listed() if listed().keys() >= set(kinds) else None)
    # in one answer each, those of a thousand jobs took 446 MB
    assert {kind: found[kind] for kind in kinds} == dict.fromkeys(kinds, True)


@pytest.mark.parametrize("seconds", [20, pytest.param(120, marks=pytest.mark.long)])
def test_while_the_api_server_is_down_little_is_asked_and_nothing_is_lost(
    plane: ControlPlane, heads: Heads, proxy: Proxy, troubled: OperatorProcess, namespace: str, seconds: int
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.training()
    proxy.down = True
    proxy.cut()
    began = time.monotonic()
    life.head.say(step=7, metrics={"reward": 0.7})
    other = Life(plane, heads, namespace, "other")
    time.sleep(seconds)
    asked = len(proxy.since(began))
    assert troubled.get("/healthz")[0] == 200, "a restart would not help"
    # three watches, a Lease and the jobs begin at once, then wait longer; a lost connection makes each request two
    assert 1 <= asked <= 40 + 3 * seconds, f"{asked} requests in {seconds} s"
    cluster.delete_pod(f"{cluster.name}-head")
    proxy.down = False
    ended = eventually("the loss", lambda: life.status.get("attempts"), 60)
    assert (ended[0]["reason"], ended[0]["lastStep"]) == ("HeadLost", 7)
    other.training()
    assert len(life.head.submissions) == len(other.head.submissions) == 1


@pytest.mark.long
def test_an_api_server_that_asks_for_a_pause_gets_it(
    plane: ControlPlane, heads: Heads, proxy: Proxy, troubled: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    proxy.retry_after = 3
    time.sleep(0.5)  # what is on its way
    began = time.monotonic()
    others = [Life(plane, heads, namespace, f"other-{i}") for i in range(5)]
    time.sleep(9.0)
    times = [asked.at for asked in proxy.since(began) if not asked.by_kopf]
    proxy.retry_after = None
    # those of the five new jobs are on their way when the first is answered; then one at a time goes ahead to see
    assert 1 <= len(times) <= 5 + 4, f"{len(times)} requests in 9 s of a server that asks for pauses of 3 s"
    for other in others:
        other.reaches("Provisioning", "WaitingForPods", seconds=30)
    assert life.reaches("Training", seconds=5)


@pytest.mark.long
def test_with_a_slow_api_server_a_job_goes_its_way_once(
    plane: ControlPlane, heads: Heads, proxy: Proxy, troubled: OperatorProcess, namespace: str
) -> None:
    proxy.delay = 0.7
    life = Life(plane, heads, namespace)
    cluster = life.cluster()
    life.head.progress = documents.progress(life.cluster_name)
    cluster.all_ready()
    life.reaches("Starting", "DriverStarting", seconds=60)
    life.head.say(state="Training")
    life.reaches("Training", "Training", seconds=30)
    assert len(life.head.submissions) == 1
    creations = [a for a in proxy.writes() if a.method == "POST" and a.path.split("?")[0].endswith("/rayclusters")]
    assert len(creations) == 1


@pytest.mark.long
def test_watches_that_are_too_old_are_begun_anew_and_miss_nothing(
    plane: ControlPlane, heads: Heads, proxy: Proxy, alone: None, namespace: str, tmp_path: Path
) -> None:
    # each list has all jobs looked at: those that other tests left are kept out by the namespace
    process = behind(proxy, plane, heads, tmp_path / "old", SIMPLERL_NAMESPACES=namespace)
    try:
        process.start()
        life = Life(plane, heads, namespace)
        cluster = life.training()
        proxy.gone = True
        proxy.cut()
        began = time.monotonic()
        other = Life(plane, heads, namespace, "other")
        cluster.delete_pod(f"{cluster.name}-head")
        time.sleep(5)
        asked, took = proxy.since(began), time.monotonic() - began
        proxy.gone = False
        # a list and a watch of each of three kinds a second
        watching = [a for a in asked if a.by_kopf]
        assert len(watching) <= 6 * (took + 1), f"{len(watching)} requests of watches in {took:.1f} s"
        assert len(asked) <= 200, f"{len(asked)} requests in {took:.1f} s"
        ended = eventually("the loss", lambda: life.status.get("attempts"), 30)
        assert ended[0]["reason"] == "HeadLost"
        other.reaches("Provisioning", "WaitingForPods", seconds=30)
    finally:
        process.stop()


def test_a_job_that_others_keep_changing_is_written_right_in_the_end(
    plane: ControlPlane, heads: Heads, proxy: Proxy, troubled: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    began = time.monotonic()
    for i in range(40):
        life.head.say(step=i + 1)
        plane.merge(life.path, {"metadata": {"annotations": {"example.com/touched": str(i)}}})
    eventually("step 40", lambda: life.status["training"]["step"] == 40)
    asked = len(proxy.since(began))
    assert asked <= 400, f"{asked} requests for 40 changes"


@pytest.mark.long
def test_a_watch_that_tells_nothing_is_noticed(
    plane: ControlPlane, heads: Heads, proxy: Proxy, alone: None, namespace: str, tmp_path: Path
) -> None:
    process = behind(proxy, plane, heads, tmp_path / "deaf", SIMPLERL_RESYNC_SECONDS="3")
    try:
        process.start()
        life = Life(plane, heads, namespace)
        life.cluster()
        time.sleep(4)
        assert process.get("/healthz") == (200, "ok\n")
        proxy.deaf = True
        other = Life(plane, heads, namespace, "unheard")
        eventually("the health to tell", lambda: process.get("/healthz")[0] == 503, 30)
        assert "is deaf: a list showed" in process.get("/healthz")[1]
        other.reaches("Provisioning", seconds=20)  # by the list, in the meantime
        proxy.deaf = False
        proxy.cut()
        eventually("the health to be well again", lambda: process.get("/healthz")[0] == 200, 30)
    finally:
        process.stop()


def test_of_two_operators_one_writes_and_the_other_takes_over(
    plane: ControlPlane, heads: Heads, proxy: Proxy, alone: None, namespace: str, tmp_path: Path
) -> None:
    second_proxy = Proxy(plane)
    second_proxy.start()
    first = behind(proxy, plane, heads, tmp_path / "first", SIMPLERL_IDENTITY="first")
    second = behind(second_proxy, plane, heads, tmp_path / "second", SIMPLERL_IDENTITY="second")
    try:
        first.start()
        second.start(standby=True)
        assert second.get("/healthz") == (200, "ok, while first holds the Lease\n")
        life = Life(plane, heads, namespace)
        life.training()
        assert proxy.writes()
        assert second_proxy.writes() == []

        # the first falls asleep in the middle of its work, as a node does that is cut off
        first.send(signal.SIGSTOP)
        stopped = time.monotonic()
        life.head.say(step=5)
        eventually("step 5", lambda: life.status["training"]["step"] == 5, 40)
        assert time.monotonic() - stopped > 10, "the Lease of one that does not answer is not taken at once"
        first.send(signal.SIGCONT)
        awake = time.monotonic()
        life.head.say(step=6)
        eventually("step 6", lambda: life.status["training"]["step"] == 6)
        time.sleep(3)
        assert proxy.writes(awake) == [], "what was asleep must not write"
        assert first.get("/healthz") == (200, "ok, while second holds the Lease\n")

        # one that is told to end gives the Lease back
        second.stop()
        ended = time.monotonic()
        life.head.say(step=7)
        eventually("step 7", lambda: life.status["training"]["step"] == 7, 20)
        assert time.monotonic() - ended < 10
        assert len(life.head.submissions) == 1
    finally:
        first.send(signal.SIGCONT)
        first.stop()
        second.stop()
        second_proxy.stop()


JUMPING_CLOCK = """
import os
import time

_true = time.time


def _told():
    with open(os.environ["CLOCK_OFFSET"]) as file:
        return _true() + float(file.read())


time.time = _told
"""


@pytest.mark.long
def test_a_clock_that_is_set_anew_ends_no_job_and_holds_no_figures_up(
    plane: ControlPlane, heads: Heads, proxy: Proxy, alone: None, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMPING_CLOCK)
    offset = tmp_path / "offset"
    offset.write_text("0")
    path = os.pathsep.join([str(tmp_path), *(str(ROOT / folder) for folder in ("crds", "operator"))])
    process = behind(proxy, plane, heads, tmp_path / "clock", PYTHONPATH=path, CLOCK_OFFSET=str(offset))
    try:
        process.start()
        life = Life(plane, heads, namespace)
        life.training()
        waiting = Life(plane, heads, namespace, "waiting")
        waiting.cluster().make_pods()
        waiting.reaches("Provisioning", "WaitingForPods")
        for step, jump in enumerate((3600, -3600, 0), 1):
            offset.write_text(str(jump))
            began = time.monotonic()
            plane.merge(waiting.path, {"metadata": {"annotations": {"look": str(jump)}}})
            life.head.say(step=step, lastProgress=time.time())
            eventually("the step", lambda step=step: life.status["training"]["step"] == step)
            time.sleep(1.5)
            assert len(proxy.since(began)) <= 60
        life.reaches("Training")
        waiting.reaches("Provisioning")
    finally:
        process.stop()
