"""What the kubectl plugin makes of documents: reports, curves, fits and the reader pod."""

import io
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from kubectl_simplerl import chart, fit, reader, report, table
from kubectl_simplerl.cli import app
from kubectl_simplerl.head import Head, Live
from kubectl_simplerl.outcome import Exit

NOW = 1_800_000_000.0


def job(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "team",
            "name": "gsm8k",
            "uid": "01234567-89ab-cdef-0123-456789abcdef",
            "creationTimestamp": "2027-01-15T07:50:00Z",
        },
        "spec": {"cluster": {"gpus": 32}, "checkpoint": {"claimName": "ckpt"}},
        "status": status,
    }


def ready(status: str, reason: str) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "reason": reason, "message": "a sentence", "lastTransitionTime": "-"}


def text(page: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=200, highlight=False).print(page)
    return out.getvalue()


TRAINING = job(
    phase="Training",
    attempt=1,
    startTime="2027-01-15T07:51:00Z",
    conditions=[ready("True", "Training")],
    training={
        "step": 37, "totalSteps": 120, "progressPercent": 30, "etaSeconds": 3700, "samplesPerSecond": 51.1,
        "metrics": {"reward": 0.41, "kl": 5e-7}, "lastUpdateTime": "-",
    },
    evaluations=[{
        "dataset": "gsm8k", "first": {"step": 0, "accuracy": 0.31}, "best": {"step": 30, "accuracy": 0.61},
        "last": {"step": 30, "accuracy": 0.61},
    }],
    cluster={"name": "gsm8k-01234-1", "uid": "u", "readyWorkers": 4, "desiredWorkers": 4},
    summary={"step": "37/120", "progress": "30%", "reward": "0.41", "eval": "gsm8k 0.61", "model": "qwen"},
)  # fmt: skip
HISTORY = {
    "steps": [
        {"step": n, "reward": n / 10 if n != 2 else None, "seconds": {"rollout": 3.0, "update": 1.0, "total": 4.0}}
        for n in (1, 2, 3)
    ],
    "evaluations": {"gsm8k": [{"step": 0, "accuracy": 0.31}, {"step": 3, "accuracy": 0.61}]},
}


def test_a_line_of_the_list_is_what_the_columns_of_kubectl_get_show() -> None:
    assert report.row(TRAINING, NOW) == {
        "namespace": "team", "name": "gsm8k", "phase": "Training", "step": "37/120", "progress": "30%",
        "reward": "0.41", "eval": "gsm8k 0.61", "duration": "9m", "age": "10m", "reason": "Training", "model": "qwen",
        "gpus": "32", "cluster": "gsm8k-01234-1",
    }  # fmt: skip


def test_a_job_that_nobody_has_looked_at_yet_has_a_line_and_a_page() -> None:
    new = {**job(), "status": {}}
    assert report.row(new, NOW)["phase"] == ""
    assert "team/gsm8k" in text(table.status(report.report(new, [], [], Live(), NOW), 80))


def test_the_curves_are_the_drivers_without_figures_that_are_not_finite() -> None:
    assert report.curves(Live(HISTORY), TRAINING["status"]) == {
        "reward": [(1, 0.1), (3, 0.3)],
        "gsm8k accuracy": [(0, 0.31), (3, 0.61)],
    }


def test_without_a_driver_the_results_that_the_object_holds_are_the_curve() -> None:
    assert report.curves(Live(silence="gone"), TRAINING["status"]) == {"gsm8k accuracy": [(0, 0.31), (30, 0.61)]}


def test_the_split_of_a_step_is_the_mean_of_the_newest_steps() -> None:
    steps = [{"seconds": {"rollout": 100.0}}] + [{"seconds": {"rollout": float(n), "sync": 1.0}} for n in range(10)]
    assert report.seconds(steps) == {"rollout": 4.5, "sync": 1.0}
    assert report.seconds([]) == {}


def test_the_page_has_everything() -> None:
    pod = {
        "metadata": {"name": "gsm8k-01234-1-head", "labels": {"simplerl.io/role": "head"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    broken = {
        "metadata": {"name": "gsm8k-01234-1-worker", "labels": {"simplerl.io/role": "worker"}},
        "spec": {},
        "status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
    }
    event = {
        "metadata": {"creationTimestamp": "t"}, "lastTimestamp": "2027-01-15T07:52:00Z", "type": "Normal",
        "reason": "Training", "message": "the trainer is at work",
        "involvedObject": {"kind": "SimpleRLJob", "name": "gsm8k"},
    }  # fmt: skip
    found = report.report(TRAINING, [broken, pod], [event], Live(HISTORY, "rollout"), NOW)
    assert [p["role"] for p in found["cluster"]["pods"]] == ["head", "worker"]
    page = text(table.status(found, 100))
    for part in (
        "team/gsm8k  Training  attempt 1, runs for 9m, age 10m, now: rollout",
        "█████████░░░░░░░░░░░░░░░░░░░░░ 30%  step 37/120  1h1m left",
        "reward 0.41  kl 5e-07  51.1 samples/s",
        "gsm8k: 0.31 at first, best 0.61 (step 30), last 0.61 (step 30)",
        "• reward   ○ gsm8k accuracy",
        "STEP 4.00 s",
        "███████████████░░░░░ 75%",
        "ImagePullBackOff",
        "SimpleRLJob/gsm8k   the trainer is at work",
    ):
        assert part in page, page


def test_a_driver_that_does_not_answer_is_told_of() -> None:
    found = report.report(TRAINING, [], [], Live(silence="no head pod runs"), NOW)
    assert "No curves of the driver: no head pod runs" in text(table.status(found, 100))


def test_a_failed_job_shows_its_last_lines() -> None:
    failed = job(
        phase="Failed", conditions=[ready("False", "NonFinite")], failure={"reason": "NonFinite", "log": "line 1"}
    )
    assert "line 1" in text(table.status(report.report(failed, [], [], Live(), NOW), 100))


def test_text_of_a_users_is_no_markup() -> None:
    failed = job(phase="Failed", conditions=[{**ready("False", "X"), "message": "[red]see [/nothing]"}])
    assert "[red]see [/nothing]" in text(table.status(report.report(failed, [], [], Live(), NOW), 100))


@pytest.mark.parametrize(
    ("status", "over", "refused"),
    [
        ({"phase": "Training"}, False, False),
        ({"phase": "Succeeded"}, True, False),
        ({"phase": "Failed", "conditions": [{"type": "Stalled", "status": "True"}]}, True, False),
        ({"phase": "Pending", "conditions": [{"type": "Stalled", "status": "True"}]}, False, True),
        ({}, False, False),
    ],
)
def test_what_is_over_and_what_waits_for_an_edit(status: dict[str, Any], over: bool, refused: bool) -> None:
    assert (report.over(job(**status)), report.refused(job(**status))) == (over, refused)


def test_a_chart_has_its_ends_on_its_axes() -> None:
    assert chart.chart({"reward": [(1, 0.0), (5, 0.5), (9, 1.0)]}, width=9, height=3) == [
        "1 ┤        •",
        "  ┤    •",
        "0 ┤•",
        "  └─────────",
        "   1       9",
        "   • reward",
    ]


@pytest.mark.parametrize("curves", [{}, {"reward": []}, {"reward": [(1, 0.5)]}])
def test_what_has_no_two_points_is_no_curve(curves: dict[str, Any]) -> None:
    assert chart.chart(curves) == []


def test_a_flat_curve_is_drawn() -> None:
    assert chart.chart({"reward": [(0, 0.5), (1, 0.5)]}, width=2, height=2)[1] == "0.5 ┤••"


def test_the_token_is_in_no_text_of_a_head() -> None:
    assert "hush" not in repr(Head(None, "http://a", "http://b", "hush"))  # type: ignore[arg-type]


# -- does it fit


def node(name: str, *, labels: dict[str, str] | None = None, ready: str = "True", **amounts: str) -> dict[str, Any]:
    allocatable = {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        **{k.replace("gpu", "nvidia.com/gpu"): v for k, v in amounts.items()},
    }
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
    }


def running(on: str, phase: str = "Running", **requests: str) -> dict[str, Any]:
    containers = [{"resources": {"requests": requests}}]
    return {"spec": {"nodeName": on, "containers": containers}, "status": {"phase": phase}}


def wanted(count: int = 1, **requests: str) -> fit.Wanted:
    amounts = {k.replace("gpu", "nvidia.com/gpu"): fit.parse(v) for k, v in requests.items()}
    return fit.Wanted(role="worker", count=count, requests={**amounts, "pods": Decimal(1)})


def test_what_pods_request_is_taken_from_what_nodes_have() -> None:
    pods = [running("a", cpu="6500m", memory="8Gi"), running("a", "Succeeded", cpu="1"), running("b", cpu="1")]
    (room,) = fit.room([node("a")], pods)
    assert (room.free["cpu"], room.free["memory"], room.free["pods"]) == (Decimal("1.5"), 24 * 2**30, 109)


def test_pods_without_gpus_go_where_there_are_none() -> None:
    nodes = fit.room([node("big", gpu="8", cpu="64"), node("small")], [])
    (found,) = fit.fit(nodes, [wanted(cpu="4")])
    assert (found.placed, found.missing) == ({"small": 1}, "")


def test_pods_are_counted_against_one_another() -> None:
    nodes = fit.room([node("a", gpu="8"), node("b", gpu="8")], [running("b", **{"nvidia.com/gpu": "4"})])
    (found,) = fit.fit(nodes, [wanted(2, gpu="8", cpu="8")])
    assert found.placed == {"a": 1}
    assert found.missing == (
        "1 of 2 worker pods found no node with cpu 8, nvidia.com/gpu 8 free; "
        "the closest is b (nvidia.com/gpu: 4 of 8 free)"
    )


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "the cluster has no nodes"),
        ([node("a", ready="False")], "node a is not ready or cordoned"),
        ([{**node("a"), "spec": {"unschedulable": True}}], "node a is not ready or cordoned"),
        ([node("a", labels={"pool": "x"})], "node a has no label pool=gpus"),
        (
            [{**node("a", labels={"pool": "gpus"}), "spec": {"taints": [TAINT]}}],
            "node a has the taint gpu=yes:NoSchedule",
        ),
    ],
)
def test_nodes_that_take_no_such_pod_are_told_of(found: list[dict[str, Any]], why: str) -> None:
    shape = fit.Wanted(role="head", count=1, requests={"cpu": Decimal(1)}, selector={"pool": "gpus"})
    (answer,) = fit.fit(fit.room(found, []), [shape])
    assert answer.missing == f"the head pod found no node with cpu 1 free: {why}"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "gpu", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "value": "yes", "effect": "NoExecute"}, False),
    ],
)
def test_tolerations_count(toleration: dict[str, Any], fits: bool) -> None:
    tainted = {**node("a"), "spec": {"taints": [TAINT]}}
    shape = fit.Wanted(role="head", count=1, requests={"cpu": Decimal(1)}, tolerations=(toleration,))
    (answer,) = fit.fit(fit.room([tainted], []), [shape])
    assert (answer.missing == "") is fits


def test_the_scheduler_counts_init_containers_sidecars_limits_and_overhead() -> None:
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}, {}],
        "initContainers": [
            {"resources": {"requests": {"cpu": "3"}}},
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        ],
        "overhead": {"cpu": "100m"},
    }
    assert fit.requests(spec) == {"cpu": Decimal("3.6"), "memory": Decimal(2**30), "pods": 1}


@pytest.mark.parametrize(
    ("quantity", "number"),
    [("100m", "0.1"), ("2", "2"), ("1e3", "1000"), ("4Pi", str(4 * 2**50)), ("250n", "2.5e-7"), ("16Gi", str(2**34))],
)
def test_quantities_of_nodes(quantity: str, number: str) -> None:
    assert fit.parse(quantity) == Decimal(number)


# -- the page of the documentation

PAGE = (Path(__file__).parents[2] / "docs/kubectl.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^kubectl simplerl (.*?)(?: \|\| .*)?$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_line_of_the_page_is_understood(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").touch()
    words = shlex.split(line)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    group.commands[words[0]].make_context(words[0], words[1:])


def test_the_page_has_every_command_and_every_exit_code() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    assert {line.split()[0] for line in COMMANDS} == set(group.commands)
    assert re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE) == [str(int(code)) for code in Exit]


# -- the reader pod


def test_the_reader_reads_one_file_of_the_jobs_folder_and_may_do_nothing_else() -> None:
    ended = job(phase="Succeeded", plan={"image": "trainer:1"})
    ended["spec"]["cluster"] |= {"head": {"tolerations": [TAINT]}, "imagePullSecrets": [{"name": "pull"}]}
    pod = reader.pod(ended, reader.LOG_FILE, 100)
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["tail", "--lines=100", "--", "/checkpoints/team/gsm8k-01234567/driver.log"]
    assert container["image"] == "trainer:1"
    assert container["volumeMounts"][0]["readOnly"] is True
    assert pod["spec"]["tolerations"] == [TAINT]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not any(label.startswith("simplerl.io/") for label in pod["metadata"]["labels"])
    assert reader.pod(ended, reader.LOG_FILE, -1)["spec"]["containers"][0]["command"][1] == "--lines=+1"
