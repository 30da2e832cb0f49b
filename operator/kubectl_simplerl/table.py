"""Reports for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_simplerl import chart
from simplerl_api.status import Phase
from simplerl_operator import clock

_COLOURS = {Phase.TRAINING: "green", Phase.SUCCEEDED: "green", Phase.FAILED: "red", Phase.PENDING: "yellow"}
_FIGURES = ("reward", "accuracy", "kl", "entropy", "clip_fraction", "response_length", "explained_variance")


def listing(rows: Sequence[Mapping[str, str]], *, all_namespaces: bool, wide: bool) -> RenderableType:
    """The table of `list`."""
    columns = ["name", "phase", "step", "progress", "reward", "eval", "duration", "age"]
    columns = [*(["namespace"] if all_namespaces else []), *columns]
    columns += ["reason", "model", "gpus", "cluster"] if wide else []
    table = _plain(*(column.upper() for column in columns))
    for row in rows:
        table.add_row(*(_phase(row[c]) if c == "phase" else Text(row[c]) for c in columns))
    return table


def status(report: Mapping[str, Any], width: int) -> RenderableType:
    """The page of `status`."""
    parts: list[RenderableType] = [_header(report)]
    if report.get("message"):
        parts.append(Text(report["message"]))
    parts += _training(report)
    lines = chart.chart(report["curves"], width=max(20, min(width - 12, 100)))
    if lines:
        parts += ["", *(Text(line) for line in lines)]
    parts += _seconds(report["seconds"])
    parts += _pods(report["cluster"])
    parts += _conditions(report["conditions"])
    parts += _events(report["events"])
    if failure := report.get("failure"):
        parts += ["", Text("Last lines of the driver", style="bold"), Text(failure.get("log", ""))]
    if report["phase"] == Phase.TRAINING and report["driver"] != "answers":
        parts += ["", Text(f"No curves of the driver: {report['driver']}", style="yellow")]
    return Group(*parts)


def _header(report: Mapping[str, Any]) -> Text:
    text = Text.assemble((f"{report['namespace']}/{report['name']}", "bold"), "  ", _phase(report["phase"]))
    if report["reason"] and report["reason"] != report["phase"]:
        text.append(f" ({report['reason']})")
    facts = [
        f"attempt {report['attempt']}" if report["attempt"] else "",
        f"runs for {report['duration']}" if report["duration"] and "completionTime" not in report else "",
        f"took {report['duration']}" if "completionTime" in report else "",
        f"age {report['age']}",
        f"now: {report['activity']}" if report["activity"] and report["phase"] == Phase.TRAINING else "",
    ]
    text.append("  " + ", ".join(filter(None, facts)), style="dim")
    return text


def _training(report: Mapping[str, Any]) -> list[RenderableType]:
    training = report.get("training")
    if training is None:
        return []
    percent = training["progressPercent"]
    eta = f"  {clock.duration(training['etaSeconds'])} left" if training.get("etaSeconds") else ""
    lines: list[RenderableType] = [
        "", Text(f"{chart.bar(percent / 100, 30)} {percent}%  step {training['step']}/{training['totalSteps']}{eta}")
    ]  # fmt: skip
    metrics = training.get("metrics", {})
    figures = [f"{name} {metrics[name]:g}" for name in _FIGURES if name in metrics]
    speed = training.get("samplesPerSecond")
    figures += [f"{speed:g} samples/s"] if speed is not None else []
    lines += [Text("  ".join(figures))] if figures else []
    for e in report.get("evaluations", []):
        line = f"{e['dataset']}: {e['first']['accuracy']:g} at first, best {e['best']['accuracy']:g} "
        lines.append(
            Text(f"{line}(step {e['best']['step']}), last {e['last']['accuracy']:g} (step {e['last']['step']})")
        )
    if found := report.get("checkpoint"):
        lines.append(Text(f"checkpoint of step {found['step']}: {found['path']}"))
    if found := report.get("model"):
        lines.append(Text(f"model: {found['path']}"))
    return lines


def _seconds(split: Mapping[str, float]) -> list[RenderableType]:
    total = split.get("total") or sum(split.values())
    parts = {name: value for name, value in split.items() if name != "total"}
    if not parts or not total:
        return []
    table = _plain(f"STEP {total:.2f} s", "SECONDS", "SHARE")
    for name, value in sorted(parts.items(), key=lambda item: -item[1]):
        table.add_row(name, f"{value:.2f}", f"{chart.bar(value / total, 20)} {value / total:.0%}")
    return ["", table]


def _pods(cluster: Mapping[str, Any]) -> list[RenderableType]:
    if not cluster["pods"]:
        return []
    table = _plain("POD", "ROLE", "READY", "STATUS", "NODE")
    for pod in cluster["pods"]:
        word = pod["reason"] or pod["phase"]
        table.add_row(pod["name"], pod["role"], "yes" if pod["ready"] else "no", word, pod["node"])
    return ["", table]


def _conditions(conditions: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    if not conditions:
        return []
    table = _plain("CONDITION", "STATUS", "REASON", "SINCE")
    for c in conditions:
        table.add_row(c["type"], c["status"], c["reason"], c["lastTransitionTime"])
    return ["", table]


def _events(events: Sequence[Mapping[str, str]]) -> list[RenderableType]:
    if not events:
        return []
    table = _plain("TIME", "TYPE", "REASON", "OBJECT", "MESSAGE")
    for e in events:
        table.add_row(e["time"], e["type"], e["reason"], e["object"], Text(e["message"]))
    return ["", table]


def _plain(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _phase(phase: str) -> Text:
    return Text(phase, style=next((style for known, style in _COLOURS.items() if known == phase), ""))
