"""`plan`: what would be made of a job, what the API server says of it, and whether it fits."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_simplerl import fit
from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.outcome import Exit, Fault
from simplerl_api import names, validation, yaml12
from simplerl_operator.build import ray_cluster
from simplerl_operator.kinds import JOB, POD, Kind
from simplerl_operator.kubernetes_api import Document, Refused
from simplerl_operator.observe import job as jobs

_NODE = Kind("", "v1", "nodes", "Node")
_UNKNOWN_UID = "xxxxxxxx"
_DEFAULT_IMAGE = "(the operator's default)"
_FURTHER = "further engine"
"""Pods of engines that the job starts without."""


async def of(cluster: Cluster, name: str | None, file: Path | None) -> dict[str, Any]:
    """The plan of a job in the cluster, or of one in a file. Raises Fault."""
    if file is not None:
        document = _read(file, cluster.namespace)
        refusal = await _rehearse(cluster, document)
    else:
        assert name is not None
        document, refusal = await cluster.job(name), ""
    metadata = document["metadata"]
    job = jobs.read(
        {
            **document,
            "metadata": {"uid": _UNKNOWN_UID, "generation": 1, "resourceVersion": "", **metadata},
        },
        _DEFAULT_IMAGE,
    )
    faults = [*job.faults, *([refusal] if refusal and not job.faults else [])]
    if job.spec is None or job.plan is None:
        return {"namespace": metadata["namespace"], "name": metadata["name"], "faults": faults, "fits": False}
    manifest = ray_cluster.ray_cluster(job)
    try:
        nodes, pods = await asyncio.gather(cluster.api.list(_NODE, None), cluster.api.list(POD, None))
    except Refused as refused:
        raise Fault(f"whether it fits cannot be told, since nodes and pods may not be read: {refused}") from refused
    # pods of the job's own that run already do not stand in its way
    others = [p for p in pods if p["metadata"].get("labels", {}).get(names.LABEL_UID) != job.uid]
    workers, *engines = manifest["spec"]["workerGroupSpecs"]
    wanted = [_wanted("worker", workers["replicas"], workers["template"]["spec"])]
    wanted.append(_wanted("head", 1, manifest["spec"]["headGroupSpec"]["template"]["spec"]))
    for group in engines:
        least, spec = group["minReplicas"], group["template"]["spec"]
        wanted.append(_wanted("engine", least, spec))
        if (further := group["replicas"] - least) > 0:
            wanted.append(_wanted(_FURTHER, further, spec))
    found = fit.fit(fit.room(nodes, others), wanted)
    return {
        "namespace": job.namespace,
        "name": job.name,
        "faults": faults,
        "plan": job.plan.document(),
        "creates": [
            f"Secret/{names.secret(job.name, job.uid)}",
            f"ConfigMap/{job.cluster_name}",
            f"RayCluster/{job.cluster_name}",
        ],
        "pods": [
            {
                "role": shape.role,
                "count": shape.count,
                "requests": fit.text(shape.requests),
                "placed": dict(where.placed),
                "missing": where.missing,
            }
            for shape, where in zip(wanted, found, strict=True)
        ],
        "fits": not any(where.missing for where in found if where.role != _FURTHER),
    }


def page(found: Mapping[str, Any]) -> RenderableType:
    """The plan for people."""
    parts: list[RenderableType] = [Text(f"{found['namespace']}/{found['name']}", style="bold")]
    parts += [Text(f"refused: {fault}", style="red") for fault in found["faults"]]
    if "plan" not in found:
        return Group(*parts)
    plan = found["plan"]
    parts.append(Text(
        f"{plan['placement']}: {plan['gpus']} GPUs on {plan['nodes']} worker pods of {plan['gpusPerNode']}, "
        f"{plan['ranks']} ranks at ZeRO stage {plan['zeroStage']}, {_engines(plan)} engines, "
        f"image {plan.get('image', _DEFAULT_IMAGE)}"
    ))  # fmt: skip
    parts.append(Text(f"creates {', '.join(found['creates'])}"))
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in ("PODS", "COUNT", "EACH REQUESTS", "WOULD GO TO"):
        table.add_column(column, overflow="fold")
    for pods in found["pods"]:
        places = ", ".join(f"{node} x{n}" if n > 1 else node for node, n in pods["placed"].items())
        table.add_row(pods["role"], str(pods["count"]), pods["requests"], places or "-")
    parts += ["", table, ""]
    missing = [pods["missing"] for pods in found["pods"] if pods["missing"]]
    parts += [Text(sentence, style="yellow" if found["fits"] else "red") for sentence in missing]
    if found["fits"]:
        parts.append(Text(f"it {'starts' if missing else 'fits'} on the nodes as they are"))
    return Group(*parts)


def _engines(plan: Mapping[str, Any]) -> str:
    """How many, or from how many to how many where they come and go."""
    least = plan.get("minEngines")
    return str(plan["engines"]) if least in (None, plan["engines"]) else f"{least} to {plan['engines']}"


def _read(file: Path, namespace: str) -> Document:
    try:
        document = yaml12.load_file(file)
    except UnicodeDecodeError as error:
        raise Fault(f"{file} cannot be read: it is not a text in UTF-8", Exit.USAGE) from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise Fault(f"{file} cannot be read: {said}", Exit.USAGE) from error
    if not isinstance(document, dict) or document.get("kind") != JOB.kind:
        raise Fault(f"{file} holds no {JOB.kind}: give a file with one job", Exit.USAGE)
    metadata = document.get("metadata")
    try:
        validation.parse_metadata(metadata)
    except validation.InvalidJob as invalid:
        raise Fault(f"{file}: {invalid.faults[0]}", Exit.USAGE) from invalid
    assert isinstance(metadata, dict), "it was just read"
    return {**document, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


async def _rehearse(cluster: Cluster, document: Document) -> str:
    """What the API server would say to the job; empty where it would take it or has it already."""
    try:
        await cluster.api.create(JOB, document["metadata"]["namespace"], document, rehearse=True)
    except Refused as refusal:
        return "" if refusal.exists else str(refusal)
    return ""


def _wanted(role: str, count: int, spec: Document) -> fit.Wanted:
    return fit.Wanted(
        role=role,
        count=count,
        requests=fit.requests(spec),
        selector=spec.get("nodeSelector", {}),
        tolerations=tuple(spec.get("tolerations", [])),
    )
