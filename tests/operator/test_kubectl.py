"""`kubectl simplerl` against a real API server, the operator, and stand-ins for the heads."""

import json
import os
import pty
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.operator import documents, programs
from tests.operator.control_plane import ADMIN_TOKEN, ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess
from typer.testing import CliRunner

from kubectl_simplerl.cli import app
from simplerl_api import yaml12
from simplerl_api.spec.job import Spec

ROOT = Path(__file__).parents[2]
Run = Callable[..., Result]


@pytest.fixture
def environment(plane: ControlPlane, heads: Heads) -> dict[str, str]:
    return {
        "KUBECONFIG": str(plane.kubeconfig(ADMIN_TOKEN)),
        "SIMPLERL_HEAD_ADDRESS": f"http://127.0.0.1:{heads.port}/{{namespace}}/{{cluster}}",
        "PATH": f"{programs.path('kubectl').parent}{os.pathsep}{os.environ['PATH']}",
    }


@pytest.fixture
def run(plane: ControlPlane, environment: dict[str, str], namespace: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command of the plugin in the test's namespace."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    kubeconfig = environment["KUBECONFIG"]

    def command(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, f"--namespace={namespace}", f"--kubeconfig={kubeconfig}"])

    return command


@pytest.fixture
def life(plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str) -> Life:
    return Life(plane, heads, namespace)


def as_json(result: Result, code: int = 0) -> Any:
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_training_job_is_listed_shown_and_followed(life: Life, run: Run) -> None:
    cluster = life.training()
    life.head.history = {
        "steps": [{"step": n, "reward": n / 10, "seconds": {"rollout": 3.0, "total": 4.0}} for n in (1, 2, 3)],
        "evaluations": {"held-out": [{"step": 0, "accuracy": 0.34}]},
    }
    life.head.say(step=3, metrics={"reward": 0.3}, activity="rollout")
    eventually("step 3", lambda: life.status.get("training", {}).get("step") == 3)

    (row,) = as_json(run("list", "-o", "json"))
    assert (row["name"], row["phase"], row["step"]) == ("tiny", "Training", "3/60")
    listed = run("list", "-o", "wide").stdout.splitlines()
    assert listed[0].split()[:3] == ["NAME", "PHASE", "STEP"]
    assert listed[1].split()[:5] == ["tiny", "Training", "3/60", "5%", "0.30"]

    report = as_json(run("status", "tiny", "-o", "json"))
    assert report["curves"]["reward"] == [[1, 0.1], [2, 0.2], [3, 0.3]]
    assert report["seconds"] == {"rollout": 3.0, "total": 4.0}
    assert report["activity"] == "rollout"
    assert report["driver"] == "answers"
    assert [pod["role"] for pod in report["cluster"]["pods"]] == ["head", "worker", "worker", "worker"]
    assert "Training" in [event["reason"] for event in report["events"]]
    page = run("status", "tiny").stdout
    assert "step 3/60" in page
    assert "• reward" in page

    life.head.log = "line 1\nline 2\nline 3\n"
    assert run("logs", "tiny").stdout == "line 1\nline 2\nline 3\n"
    assert run("logs", "tiny", "--tail", "1", "-o", "json").stdout == '{"source": "driver", "line": "line 3"}\n'
    life.head.actors = {"a": "rank 0 says\n", "b": "rank 1 says\n"}
    assert run("logs", "tiny", "--ranks").stdout.splitlines() == [
        "[node 012345 pid 100] rank 0 says",
        "[node 012345 pid 101] rank 1 says",
    ]

    # followed until the job ends
    def end() -> None:
        time.sleep(1)
        life.head.log += "line 4\n"
        life.head.say(state="Succeeded", step=60)

    ending = threading.Thread(target=end)
    ending.start()
    followed = run("logs", "tiny", "--follow", "--tail", "1")
    ending.join()
    assert (followed.exit_code, followed.stdout) == (0, "line 3\nline 4\n")

    # and its token was shown nowhere
    assert not any(token in text for token in life.head.tokens for text in (page, followed.output))
    assert run("status", "tiny").exit_code == 0
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    gone = run("logs", "tiny")
    assert gone.exit_code == 3
    assert gone.stderr == "error: job tiny is Succeeded and had no claim: its log went with its pods\n"
    assert (
        run("logs", "tiny", "--ranks").stderr
        == "error: job tiny is Succeeded: what its ranks wrote went with their pods\n"
    )
    assert run("suspend", "tiny").stderr == "error: job tiny is Succeeded: there is nothing to suspend\n"


@pytest.mark.skipif("suspend" not in Spec.model_fields, reason="jobs cannot be suspended")
def test_a_job_is_suspended_and_resumed_once(life: Life, plane: ControlPlane, run: Run) -> None:
    life.reaches("Provisioning")
    done = run("suspend", "tiny")
    assert (done.exit_code, done.stdout) == (0, "simplerljob.simplerl.io/tiny suspended\n")
    assert plane.find(life.path)["spec"]["suspend"] is True
    assert run("suspend", "tiny").stdout == "job tiny is suspended already\n"
    assert as_json(run("resume", "tiny", "-o", "json"))["changed"] is True
    assert plane.find(life.path)["spec"].get("suspend", False) is False


def test_a_failed_job_ends_a_wait_with_code_1_and_shows_its_last_lines(life: Life, run: Run) -> None:
    life.training()

    def end() -> None:
        time.sleep(0.5)
        failure = {"reason": "NonFinite", "message": "three steps in a row"}
        life.head.say(state="Failed", step=3, failure=failure, log=["line 1", "line 2"])

    ending = threading.Thread(target=end)
    ending.start()
    waited = run("status", "tiny", "--wait", "-o", "json")
    ending.join()
    assert as_json(waited, code=1)["reason"] == "NonFinite"
    assert run("logs", "tiny", "--tail", "1").stdout == "line 2\n"
    assert "line 2" in run("status", "tiny").stdout


def test_a_wait_that_is_too_short_says_where_the_job_stands(life: Life, run: Run) -> None:
    life.reaches("Provisioning")
    waited = run("status", "tiny", "--wait", "--timeout", "0")
    assert (waited.exit_code, waited.stderr) == (3, "error: timed out after 0 s: job tiny is Provisioning\n")
    logs = run("logs", "tiny")
    assert (logs.exit_code, logs.stderr) == (3, "error: no head pod of job tiny runs: it is Provisioning\n")


def test_the_dashboard_adds_the_token_for_the_browser_that_has_the_address(
    life: Life, environment: dict[str, str]
) -> None:
    life.training()
    life.head.tokens.clear()
    command = [sys.executable, "-m", "kubectl_simplerl", "dashboard", "tiny", "-n", life.namespace, "-o", "json"]
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("crds", "operator"))
    process = subprocess.Popen(
        command, env={**os.environ, **environment, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        urls = json.loads("".join(process.stdout.readline() for _ in range(4)))
        for url in (urls["page"], urls["dashboard"]):
            base = url.split("?")[0]
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(base, timeout=10)
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(base + "?key=wrong", timeout=10)
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            with browser.open(url, timeout=10) as answer:
                assert answer.read() == b"<h1>a page</h1>"
                assert answer.url == base
            with browser.open(base + "api/version", timeout=10) as answer:
                assert json.load(answer)["ray_version"] == "2.60.0"
        assert len(life.head.tokens) == 1
    finally:
        process.terminate()
        process.wait(20)


def test_on_a_terminal_the_page_is_kept_up_to_date_until_the_job_ends(life: Life, environment: dict[str, str]) -> None:
    life.training()
    life.head.history = {"steps": [{"step": n, "reward": n / 10, "seconds": {"total": 1.0}} for n in (1, 2)]}
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("crds", "operator"))
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kubectl_simplerl", "status", "tiny", "-n", life.namespace, "--watch"],
        env={**os.environ, **environment, "PYTHONPATH": paths, "TERM": "xterm", "COLUMNS": "100", "LINES": "60"},
        stdout=follower, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(follower)
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                shown.extend(os.read(leader, 2**16))
            except OSError:  # the terminal's other side is closed: EIO
                return

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        eventually("a page with curves", lambda: "• reward".encode() in shown)
        life.head.say(step=30, metrics={"reward": 0.9})
        eventually("a newer page", lambda: b"step 30/60" in shown)
        life.head.say(state="Succeeded", step=60)
        assert process.wait(30) == 0
        eventually("the last page", lambda: b"step 60/60" in shown)
    finally:
        process.kill()
        process.wait(10)
        os.close(leader)


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "plan-node"},
}


def test_a_plan_says_whether_a_file_fits_on_the_nodes_as_they_are(
    plane: ControlPlane, run: Run, tmp_path: Path, namespace: str
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml12.dump(documents.job("tiny", "elsewhere")).replace("  namespace: elsewhere\n", ""))
    for node in plane.request("GET", "/api/v1/nodes")["items"]:  # of other tests
        plane.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    without = run("plan", "-f", str(file), "-o", "json")
    found = as_json(without, code=1)
    assert found["pods"][0]["missing"] == (
        "3 of 3 worker pods found no node with cpu 0.2, memory 1Gi free: the cluster has no nodes"
    )
    plane.request("POST", "/api/v1/nodes", NODE)
    try:
        plane.merge("/api/v1/nodes/plan-node/status", {"status": {
            "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }})  # fmt: skip
        plane.merge("/api/v1/nodes/plan-node", {"spec": {"taints": None}})
        found = as_json(run("plan", "-f", str(file), "-o", "json"))
        assert [pods["placed"] for pods in found["pods"]] == [{"plan-node": 3}, {"plan-node": 1}]
        assert found["plan"]["engines"] == 1
        assert found["creates"][2] == "RayCluster/tiny-xxxxx-1"
        assert "it fits on the nodes as they are" in run("plan", "-f", str(file)).stdout
        rollout = {**documents.TINY["rollout"], "elastic": {"minEngines": 2, "maxEngines": 20}}
        cluster = {**documents.TINY["cluster"], "gpus": 22}
        other = tmp_path / "elastic.yaml"
        other.write_text(yaml12.dump(documents.job("elastic", namespace, rollout=rollout, cluster=cluster)))
        said = " ".join(run("plan", "-f", str(other)).stdout.split())
        assert "2 ranks at ZeRO stage 3, 2 to 20 engines" in said
        assert "of 18 further engine pods found no node with cpu 0.2, memory 1Gi free" in said
        assert said.endswith("it starts on the nodes as they are")
    finally:
        plane.request("DELETE", "/api/v1/nodes/plan-node")
    file.write_text(file.read_text().replace("steps: 60", "step: 60"))
    refused = run("plan", "-f", str(file))
    assert refused.exit_code == 1
    assert 'refused: unknown field "spec.training.step": did you mean steps?' in refused.stdout


def links(found: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["state"] for one in found["links"]}


def sentence(found: dict[str, Any], name: str) -> str:
    return next(str(one["sentence"]) for one in found["links"] if one["name"] == name)


def test_a_job_that_trains_is_well_until_its_driver_is_silent_or_its_lock_open(life: Life, run: Run) -> None:
    life.training()
    life.head.history = {"steps": [{"step": 1, "seconds": {"rollout": 3.0, "update": 1.0, "total": 4.0}}]}
    life.head.say(step=1, engines={"current": 1, "desired": 1})
    (ray_job,) = life.head.jobs.values()
    ray_job["status"] = "RUNNING"
    found = as_json(run("doctor", "tiny", "-o", "json"))
    assert set(links(found).values()) == {"ok"}, found
    assert found["seconds"] == {"rollout": 3.0, "update": 1.0, "total": 4.0}
    assert [line[:34] for line in found["advice"]] == ["rollout takes 75% of a step: set r"]
    page = run("doctor", "tiny")
    assert (page.exit_code, "advice: rollout takes 75%" in page.stdout) == (0, True)
    assert not any(token in page.output + json.dumps(found) for token in life.head.tokens)
    life.head.progress = None
    silent = as_json(run("doctor", "tiny", "-o", "json"), code=1)
    assert (links(silent)["driver"], links(silent)["engines"]) == ("broken", "not reached")
    assert "the driver is silent" in sentence(silent, "driver")
    life.head.locked = False
    opened = as_json(run("doctor", "tiny", "-o", "json"), code=1)
    assert (links(opened)["lock"], links(opened)["Ray nodes"]) == ("broken", "not reached")


def test_a_pod_without_a_node_is_named_in_the_schedulers_words(life: Life, run: Run) -> None:
    cluster = life.cluster()
    pods = cluster.make_pods()
    cluster.unschedulable(pods[0], "0/3 nodes are available: 3 Insufficient cpu.")
    life.reaches("Provisioning", "Unschedulable")
    found = as_json(run("doctor", "tiny", "-o", "json"), code=1)
    assert links(found)["pods"] == "broken"
    assert sentence(found, "pods") == (
        f"Unschedulable: 0 of 4 pods are placed; head pod {pods[0]}: 0/3 nodes are available: 3 Insufficient cpu."
    )


def test_a_job_without_an_operator(plane: ControlPlane, operator: OperatorProcess, run: Run, namespace: str) -> None:
    operator.stop()
    try:
        path = f"/apis/simplerl.io/v1alpha1/namespaces/{namespace}/simplerljobs/tiny"
        plane.apply(path, documents.job("tiny", namespace))
        found = as_json(run("doctor", "tiny", "-o", "json"), code=1)
        assert sentence(found, "operator").startswith("no operator is at work, since nobody holds its Lease")
    finally:
        operator.start()
    assert run("doctor", "nobody").exit_code == 3


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["status", "nobody"], 3, "error: there is no SimpleRLJob nobody in namespace {namespace}\n"),
        (["logs", "nobody"], 3, "error: there is no SimpleRLJob nobody in namespace {namespace}\n"),
        (["resume", "nobody"], 3, "error: there is no SimpleRLJob nobody in namespace {namespace}\n"),
        (["list"], 0, "there are no SimpleRLJobs in namespace {namespace}\n"),
    ],
)
def test_what_is_not_there_is_said(run: Run, namespace: str, words: list[str], code: int, sentence: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stderr) == (code, sentence.format(namespace=namespace))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"- 1", "{file} holds no SimpleRLJob: give a file with one job"),
        (b"kind: SimpleRLJob\nmetadata: [1]", "{file}: metadata is [1]: it should be an object"),
        (b"kind: SimpleRLJob\nmetadata: a", "{file}: metadata is 'a': it should be an object"),
        (b"kind: SimpleRLJob\nspec: {}", "{file}: metadata is null: it should be an object"),
        (
            b"kind: SimpleRLJob\nmetadata: {name: 5}",
            "{file}: metadata.name is 5: it should be a valid string, in quotes",
        ),
        (
            b"kind: SimpleRLJob\nmetadata: {name: a, labels: [x]}",
            '{file}: metadata.labels is ["x"]: it should be an object',
        ),
        (b"\xff\xfe", "{file} cannot be read: it is not a text in UTF-8"),
        (b"", "{file} cannot be read: expected one YAML document, found 0: write a job into it"),
        (None, "{file} cannot be read: Is a directory"),
    ],
)
def test_a_plan_of_a_file_that_is_no_job_has_code_2(
    run: Run, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "job.yaml"
    file.mkdir() if content is None else file.write_bytes(content)
    result = run("plan", "-f", str(file))
    assert (result.exit_code, result.stderr) == (2, f"error: {sentence.format(file=file)}\n")


@pytest.mark.parametrize(
    "words",
    [["status"], ["list", "-o", "xml"], ["plan"], ["plan", "a", "-f", "b"], ["logs", "a", "--tail", "0"], ["nonsense"]],
)
def test_a_wrong_command_line_has_code_2(run: Run, words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_a_cluster_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    def kubeconfig(server: str) -> str:
        document = {
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c",
        }  # fmt: skip
        (tmp_path / "config").write_text(json.dumps(document))
        return str(tmp_path / "config")

    silent = CliRunner().invoke(app, ["list", "--kubeconfig", kubeconfig("http://127.0.0.1:9")])
    assert silent.exit_code == 3
    assert silent.stderr.startswith("error: the API server http://127.0.0.1:9 did not answer GET ")
    nowhere = CliRunner().invoke(app, ["list", "--kubeconfig", str(tmp_path / "none")])
    assert nowhere.exit_code == 3
    assert nowhere.stderr.startswith("error: the kubeconfig cannot be used: ")
    other = CliRunner().invoke(app, ["list", "--context", "x", "--kubeconfig", kubeconfig("http://127.0.0.1:9")])
    assert (other.exit_code, "x" in other.stderr) == (3, True)


def test_kubectl_finds_the_plugin_and_waits_for_conditions(
    life: Life, environment: dict[str, str], tmp_path: Path
) -> None:
    plugin = tmp_path / "kubectl-simplerl"  # as the console script of an installed package
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("crds", "operator"))
    plugin.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {sys.executable} -m kubectl_simplerl "$@"\n')
    plugin.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{environment['PATH']}"

    def kubectl(*words: str) -> str:
        return subprocess.run(
            [str(programs.path("kubectl")), *words], env={**os.environ, **environment, "PATH": path},
            check=True, capture_output=True, text=True, timeout=60,
        ).stdout  # fmt: skip

    life.training()
    (row,) = json.loads(kubectl("simplerl", "list", "-n", life.namespace, "-o", "json"))
    assert row["phase"] == "Training"
    life.head.say(state="Succeeded", step=60)
    waited = kubectl("wait", "--for=condition=Succeeded", "simplerljob/tiny", "-n", life.namespace, "--timeout=30s")
    assert waited == "simplerljob.simplerl.io/tiny condition met\n"


def test_the_package_installs_the_program_that_kubectl_looks_for() -> None:
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-simplerl"] == "kubectl_simplerl.cli:app"
