"""Jobs with real KubeRay, scheduler and kwok: what a job's life costs in writes, a restart, and the plugin's way to
pods through the API server and kubelet."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from benchmarks.operator import fleet as fleets
from benchmarks.operator.plane import Fleet, running
from tests.operator import programs
from tests.operator.control_plane import ADMIN_TOKEN, eventually
from tests.operator.heads import Heads
from typer.testing import CliRunner

from kubectl_simplerl.cli import app

JOBS = 20
STEPS, STEP_SECONDS = 4, 10.0
STATUS_WRITES = 5
"""Writes of a job's status beside those of training figures."""
WRITES = 13
"""All writes of a job's life beside those of training figures; one of them is the warning that it has no claim."""
CREATED = ("secrets", "configmaps", "rayclusters")
KWOK = {"apiVersion": "kwok.x-k8s.io/v1alpha1"}


@pytest.fixture(scope="module")
def fleet(heads: Heads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    log = folder / "reader.log"
    log.write_text("".join(f"2026-11-30T10:00:0{n}.000000000Z stdout F line {n}\n" for n in (1, 2)))
    forward = {"ports": [8265, 8400], "target": {"address": "127.0.0.1", "port": heads.port}}
    kubelet: list[dict[str, Any]] = [
        {**KWOK, "kind": "ClusterPortForward", "metadata": {"name": "heads"}, "spec": {"forwards": [forward]}},
        {
            **KWOK,
            "kind": "ClusterLogs",
            "metadata": {"name": "reader"},
            "spec": {"logs": [{"containers": ["reader"], "logsFile": str(log)}]},
        },
    ]
    with running(folder, nodes=2, kubelet=kubelet) as started:
        started.start_operator(step_seconds=STEP_SECONDS, steps=STEPS)
        yield started


def jobs(namespace: str) -> str:
    return f"/apis/simplerl.io/v1alpha1/namespaces/{namespace}/simplerljobs"


def succeeded(document: Any) -> bool:
    return bool(document.get("status", {}).get("phase") == "Succeeded")


def test_twenty_jobs_live_with_few_writes_and_a_restart_in_between_costs_none(fleet: Fleet) -> None:
    namespace, since = fleet.namespace(), fleet.plane.audit_length()
    # kuberay#2646: a hundred at once stall a queue that waits for dashboards
    fleets.create_and_wait(fleet, "SimpleRLJobs", JOBS, namespace)
    # on a slow machine the first have ended before the last begin
    fleets.wait(fleet, jobs(namespace), lambda job: fleets.training(job) or succeeded(job), JOBS, "all jobs to train")
    settled = fleets.writes(fleet, namespace, since)

    seconds, _ = fleets.restart(fleet, namespace, JOBS)
    assert seconds < 60

    fleets.wait(fleet, jobs(namespace), succeeded, JOBS, "all jobs to succeed")
    # the status is written first, and then the pods are released
    clusters = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    eventually("the RayClusters to go", lambda: not fleet.plane.request("GET", clusters)["items"], 60)
    found = fleets.writes(fleet, namespace, since)
    figures = STEPS * JOBS
    print("writes of all jobs:", found)
    assert {kind: found[f"create {kind}"] for kind in CREATED} == dict.fromkeys(CREATED, JOBS)
    assert found["delete rayclusters"] == JOBS
    assert found["patch simplerljobs/status"] <= STATUS_WRITES * JOBS + figures, (settled, found)
    assert sum(found.values()) - found["rehearsals"] <= WRITES * JOBS + figures, (settled, found)
    assert set(found) == {
        *(f"create {kind}" for kind in CREATED), "patch networkpolicies", "create events", "delete rayclusters",
        "patch simplerljobs/status", "rehearsals",
    }  # fmt: skip


def test_the_plugin_reaches_a_head_by_a_forwarded_port_and_reads_the_claim_after_the_end(
    fleet: Fleet, heads: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace, plane = fleet.namespace(), fleet.plane
    claim(fleet, namespace)
    monkeypatch.setenv("PATH", f"{programs.path('kubectl').parent}:/usr/bin:/bin")
    monkeypatch.delenv("SIMPLERL_HEAD_ADDRESS", raising=False)
    flags = [f"--namespace={namespace}", f"--kubeconfig={plane.kubeconfig(ADMIN_TOKEN)}"]
    document = fleets.job("watched", namespace)
    document["spec"]["checkpoint"] = {"claimName": "ckpt"}
    path = f"{jobs(namespace)}/watched"
    plane.apply(path, document)
    created = plane.find(path)
    cluster = f"watched-{created['metadata']['uid'].replace('-', '')[:5]}-1"
    head = heads.head("", "")
    head.progress = {"sequence": 1, "activity": "rollout"}
    head.history = {"steps": [{"step": n, "reward": n / 10, "seconds": {"total": 1.0}} for n in (1, 2)]}
    head.jobs[cluster] = {}
    head.log = "the driver's line\n"
    eventually("the job to train", lambda: fleets.training(plane.find(path)), 120)

    shown = CliRunner().invoke(app, ["status", "watched", "-o", "json", *flags])
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    assert (report["driver"], report["curves"]) == ("answers", {"reward": [[1, 0.1], [2, 0.2]]})
    assert CliRunner().invoke(app, ["logs", "watched", *flags]).stdout == "the driver's line\n"
    assert len(head.tokens) == 1

    eventually("the job to end", lambda: succeeded(plane.find(path)), 240)
    ended: list[str] = []

    def end_the_reader() -> None:
        """kubelet's part: kwok's containers never end by themselves."""

        def reader() -> str | None:
            pods = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
            names = [p["metadata"]["name"] for p in pods if p.get("status", {}).get("phase") == "Running"]
            return next((name for name in names if "-reader-" in name), None)

        name = eventually("the reader pod", reader, 60)
        plane.merge(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"phase": "Succeeded"}})
        ended.append(name)

    kubelet = threading.Thread(target=end_the_reader)
    kubelet.start()
    read = CliRunner().invoke(app, ["logs", "watched", *flags])
    kubelet.join()
    assert (read.exit_code, read.stdout) == (0, "line 1\nline 2\n"), read.output
    eventually(
        "the reader pod to go", lambda: plane.find(f"/api/v1/namespaces/{namespace}/pods/{ended[0]}") is None, 30
    )


def claim(fleet: Fleet, namespace: str) -> None:
    """A bound claim, in place of the volume controller's work."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    fleet.plane.request("POST", "/api/v1/persistentvolumes", {
        "metadata": {"name": f"{namespace}-ckpt"},
        "spec": {"capacity": size, "accessModes": modes, "hostPath": {"path": "/nowhere"},
                 "claimRef": {"namespace": namespace, "name": "ckpt"}},
    })  # fmt: skip
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    fleet.plane.request("POST", claims, {
        "metadata": {"name": "ckpt", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": modes, "resources": {"requests": size}, "volumeName": f"{namespace}-ckpt",
                 "storageClassName": ""},
    })  # fmt: skip
    fleet.plane.merge(f"{claims}/ckpt/status", {"status": {"phase": "Bound", "accessModes": modes, "capacity": size}})


def test_the_reader_pod_is_taken_where_podsecurity_is_restricted(fleet: Fleet) -> None:
    from kubectl_simplerl import reader

    namespace = fleet.namespace()
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    fleet.plane.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": label}})
    job = fleets.job("tiny", namespace)
    job["metadata"]["uid"] = "01234567-89ab-cdef-0123-456789abcdef"
    job |= {"status": {"plan": {"image": fleets.IMAGE}}}
    job["spec"]["checkpoint"] = {"claimName": "ckpt"}
    pod = reader.pod(job, reader.LOG_FILE, -1)
    made = fleet.plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict", pod)
    assert made["spec"]["containers"][0]["name"] == "reader"
