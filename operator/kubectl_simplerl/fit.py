"""Whether pods fit on nodes as they are: allocatable minus what the pods there request. A pure function."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from simplerl_api import quantity

Amounts = Mapping[str, Decimal]
"""Amounts by the resource's name; `pods` counts pods."""
_KINDS = {"cpu": "", "pods": ""}
"""Resources that are not bytes; all others with more than 2^20 are printed in Gi."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node with room."""

    name: str
    free: Amounts
    allocatable: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[tuple[str, str, str], ...] = ()
    """Key, value and effect."""
    unschedulable: bool = False


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Pods of one shape."""

    role: str
    count: int
    requests: Amounts
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Where the pods of one shape went."""

    role: str
    count: int
    placed: Mapping[str, int]
    """How many on each node."""
    missing: str = ""
    """The sentence about those that found no node."""


def requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """What the scheduler counts for a pod: its containers together, or one init container that asks for more, and the
    overhead; https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers."""
    total: dict[str, Decimal] = {}
    for container in spec.get("containers", []):
        _add(total, _amounts(container))
    for container in spec.get("initContainers") or []:
        asked = _amounts(container)
        if container.get("restartPolicy") == "Always":
            _add(total, asked)
        else:
            for name, amount in asked.items():
                total[name] = max(total.get(name, Decimal(0)), amount)
    _add(total, {k: parse(v) for k, v in (spec.get("overhead") or {}).items()})
    return {**total, "pods": Decimal(1)}


def room(nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> list[Node]:
    """The nodes that are ready, with what is left of them."""
    used: dict[str, dict[str, Decimal]] = {}
    for pod in pods:
        name = pod["spec"].get("nodeName")
        if name and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            _add(used.setdefault(name, {}), requests(pod["spec"]))
    out = []
    for document in nodes:
        name, spec = document["metadata"]["name"], document.get("spec", {})
        status = document.get("status", {})
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
        allocatable = {k: parse(v) for k, v in status.get("allocatable", {}).items()}
        taken = used.get(name, {})
        out.append(
            Node(
                name=name,
                allocatable=allocatable,
                free={k: amount - taken.get(k, Decimal(0)) for k, amount in allocatable.items()},
                labels=document["metadata"].get("labels", {}),
                taints=tuple((t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints", [])),
                unschedulable=bool(spec.get("unschedulable")) or not ready,
            )
        )
    return sorted(out, key=lambda node: node.name)


def fit(nodes: Sequence[Node], wanted: Sequence[Wanted]) -> list[Fit]:
    """Places the pods, the shapes in the order given, each pod on the node that it leaves least room on."""
    free = {node.name: dict(node.free) for node in nodes}
    out = []
    for shape in wanted:
        allowed = [node for node in nodes if _refusal(node, shape) is None]
        placed: dict[str, int] = {}
        for _ in range(shape.count):
            fitting = [node for node in allowed if not _lacking(free[node.name], shape.requests)]
            if not fitting:
                break
            best = min(fitting, key=lambda node: (_left(free[node.name], shape.requests), node.name))
            for name, amount in shape.requests.items():
                free[best.name][name] = free[best.name].get(name, Decimal(0)) - amount
            placed[best.name] = placed.get(best.name, 0) + 1
        short = shape.count - sum(placed.values())
        missing = _missing(short, shape, nodes, allowed, free) if short else ""
        out.append(Fit(role=shape.role, count=shape.count, placed=placed, missing=missing))
    return out


def parse(text: str) -> Decimal:
    """A quantity of the API server, which may be of any notation. Raises ValueError."""
    for suffix, factor in (("Pi", 2**50), ("Ei", 2**60), ("P", 10**15), ("E", 10**18)):
        if text.endswith(suffix) and text[: -len(suffix)].replace(".", "", 1).isdigit():
            return Decimal(text[: -len(suffix)]) * factor
    for suffix, small in (("n", Decimal("1e-9")), ("u", Decimal("1e-6"))):
        if text.endswith(suffix):
            return Decimal(text[:-1]) * small
    return Decimal(text) if "e" in text or "E" in text else quantity.number(text)


def text(amounts: Amounts) -> str:
    """Amounts for people, for example `cpu 8, memory 64Gi, nvidia.com/gpu 8`."""
    return ", ".join(f"{name} {_number(name, amount)}" for name, amount in sorted(amounts.items()) if name != "pods")


def _number(name: str, amount: Decimal) -> str:
    if name not in _KINDS and abs(amount) >= 2**20:
        return f"{float(amount) / 2**30:.4g}Gi"
    return f"{float(amount):.4g}"


def _missing(
    short: int, shape: Wanted, nodes: Sequence[Node], allowed: Sequence[Node], free: Mapping[str, Amounts]
) -> str:
    pods = f"{short} of {shape.count} {shape.role} pods" if shape.count > 1 else f"the {shape.role} pod"
    want = f"{pods} found no node with {text(shape.requests)} free"
    if not nodes:
        return f"{want}: the cluster has no nodes"
    if not allowed:
        return f"{want}: {_refusal(nodes[0], shape)}" + (f", and so on for all {len(nodes)} nodes" if nodes[1:] else "")
    closest = min(allowed, key=lambda node: (len(_lacking(free[node.name], shape.requests)), node.name))
    lacks = _lacking(free[closest.name], shape.requests)
    figures = ", ".join(
        f"{name}: {_number(name, free[closest.name].get(name, Decimal(0)))} of "
        f"{_number(name, closest.allocatable.get(name, Decimal(0)))} free"
        for name in lacks
    )
    return f"{want}; the closest is {closest.name} ({figures})"


def _refusal(node: Node, shape: Wanted) -> str | None:
    """Why a node takes no such pod, whatever room it has."""
    if node.unschedulable:
        return f"node {node.name} is not ready or cordoned"
    for name, value in shape.selector.items():
        if node.labels.get(name) != value:
            return f"node {node.name} has no label {name}={value}"
    for key, value, effect in node.taints:
        if effect in ("NoSchedule", "NoExecute") and not any(
            _tolerates(t, key, value, effect) for t in shape.tolerations
        ):
            return f"node {node.name} has the taint {key}{'=' if value else ''}{value}:{effect}"
    return None


def _tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", key)
    return bool(toleration.get("key") == key and toleration.get("value", "") == value)


def _lacking(free: Amounts, asked: Amounts) -> list[str]:
    return sorted(name for name, amount in asked.items() if amount > 0 and free.get(name, Decimal(0)) < amount)


def _left(free: Amounts, asked: Amounts) -> tuple[Decimal, ...]:
    """What would be left, GPUs first: pods without GPUs go where there are none."""
    others = sorted(name for name in free if "/" in name)
    return tuple(free.get(n, Decimal(0)) - asked.get(n, Decimal(0)) for n in (*others, "cpu", "memory"))


def _amounts(container: Mapping[str, Any]) -> dict[str, Decimal]:
    resources = container.get("resources") or {}
    # a limit without a request is the request
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse(amount) for name, amount in asked.items()}


def _add(total: dict[str, Decimal], more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount
