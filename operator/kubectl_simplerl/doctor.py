"""Walks the chain from a job's YAML to its training, up to the first link that does not hold; then advises."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_simplerl import advice, chart, examination, head_links, link, object_links, report
from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.head_links import HeadSight
from kubectl_simplerl.link import Link, State
from kubectl_simplerl.object_links import Objects
from kubectl_simplerl.outcome import Exit
from simplerl_api.status import Phase
from simplerl_operator.kubernetes_api import Document

_COLOURS = {State.OK: "green", State.BROKEN: "red", State.WAITS: "yellow", State.UNSEEN: "yellow"}


async def examine(cluster: Cluster, name: str) -> tuple[dict[str, Any], Exit]:
    """The report, and the exit code: 1 where a link is broken. Raises Fault where there is no such job."""
    seen = await examination.objects(cluster, name, time.time())
    walked = of_objects(seen)
    history: Mapping[str, Any] = {}
    sight = HeadSight()
    if not walked[-1].ends:
        sight, history = await examination.ask(cluster, seen.job)
        walked = [*walked, *of_head(sight, seen.job, seen.now)]
    split, advised = advised_by(seen.job, sight, history) if not walked[-1].ends else ({}, [])
    bad = walked[-1].state is State.BROKEN
    found = {
        "namespace": cluster.namespace,
        "name": name,
        "well": not bad,
        "links": [one.document() for one in link.filled(walked)],
        "seconds": split,
        "advice": advised,
    }
    return found, Exit.NO if bad else Exit.OK


def of_objects(seen: Objects) -> list[Link]:
    """The links up to the pods."""
    return _walk([
        lambda: object_links.accepted(seen),
        lambda: object_links.operator(seen),
        lambda: object_links.standing(seen),
        lambda: object_links.cluster(seen),
        lambda: object_links.pods(seen),
    ])  # fmt: skip


def of_head(seen: HeadSight, job: Document, now: float) -> list[Link]:
    """The links from the head's ports on."""
    status = job.get("status", {})
    cluster = status.get("cluster") or {}
    elastic = "elastic" in (job.get("spec", {}).get("rollout") or {})
    return _walk([
        lambda: head_links.ports(seen),
        lambda: head_links.lock(seen),
        lambda: head_links.nodes(seen, status.get("plan") or {}, cluster.get("readyWorkers", 0)),
        lambda: head_links.ray_job(seen, cluster.get("submissionId")),
        lambda: head_links.driver(seen, job, now),
        lambda: head_links.engines(seen, status, elastic=elastic),
    ])  # fmt: skip


def _walk(rules: Sequence[Callable[[], Link]]) -> list[Link]:
    walked: list[Link] = []
    for rule in rules:
        walked.append(rule())
        if walked[-1].ends:
            break
    return walked


def advised_by(job: Document, seen: HeadSight, history: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The split of a step's time, and what to change; nothing before the first step."""
    status = job.get("status", {})
    if report.phase(job) != Phase.TRAINING:
        return {}, []
    split = report.seconds(history.get("steps", []))
    metrics = (seen.progress or {}).get("metrics") or (status.get("training") or {}).get("metrics") or {}
    case = advice.Case(split=split, metrics=metrics, spec=job.get("spec", {}), plan=status.get("plan") or {})
    return split, advice.sentences(case)


def page(found: Mapping[str, Any]) -> RenderableType:
    """The page for people."""
    links = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in ("LINK", "STATE", ""):
        links.add_column(column, overflow="fold")
    for one in found["links"]:
        links.add_row(one["name"], Text(one["state"], style=_COLOURS.get(one["state"], "dim")), Text(one["sentence"]))
    parts: list[RenderableType] = [links]
    split = found["seconds"]
    total = split.get("total") or sum(split.values())
    if total:
        seconds = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        for column in (f"STEP {total:.2f} s", "SECONDS", "SHARE"):
            seconds.add_column(column)
        for name, value in sorted(split.items(), key=lambda item: -item[1]):
            if name != "total":
                seconds.add_row(name, f"{value:.2f}", f"{chart.bar(value / total, 20)} {value / total:.0%}")
        parts += ["", seconds]
    parts += ["", *(Text(f"advice: {sentence}") for sentence in found["advice"])] if found["advice"] else []
    return Group(*parts)
