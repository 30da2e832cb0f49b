"""The report of `simplerl plan` as tables for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from simplerl_trainer.planning.report import Report


def show(report: Report, console: Console) -> None:
    """Prints a report."""
    parts: list[RenderableType] = [_sizes(report), _slots(report), _chosen(report["chosen"])]
    if report["memory"] is not None:
        parts.append(_memory(report["memory"]))
    if report["deepspeed"] is not None:
        parts.append(_deepspeed(report["deepspeed"]))
    parts += [Text(f"warning: {sentence}", "yellow") for sentence in report["warnings"]]
    console.print(Group(*parts))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _sizes(report: Report) -> Table:
    plan, steps, model = report["plan"], report["optimizerSteps"], report["model"]
    table = _table("Plan", "", "")
    table.show_header = False
    known = "unknown" if "unknown" in model else f"{model['family']}, {_count(model['parameters'])} parameters"
    rows = [
        ("model", known),
        ("placement", plan["placement"]),
        ("nodes", f"{plan['nodes']}, of {plan['gpusPerNode']} {'slot' if plan['gpusPerNode'] == 1 else 'slots'} each"),
        ("ranks", f"{plan['ranks']}, ZeRO stage {plan['zeroStage']}, {plan['precision']}"),
        ("engines", f"{_from(plan)}{plan['engines']}{_over(plan['tensorParallelSize'])}"),
        (
            "optimizer steps",
            f"{steps['perStep']} a step of {steps['samplesPerStep']} samples, {steps['inAll']} in all",
        ),
        ("checkpoints", "on a claim" if plan["durable"] else "none: checkpoint.claimName is absent"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _from(plan: dict[str, Any]) -> str:
    """The least engines of a job whose engines come and go."""
    return f"{plan['minEngines']} to " if "minEngines" in plan else ""


def _over(gpus: int) -> str:
    return "" if gpus == 1 else f", each over {gpus} slots"


def _slots(report: Report) -> Table:
    """One row for each run of nodes that hold the same."""
    table = _table("Slots", "node", "slot", "rank", "engines")
    nodes: dict[int, list[Mapping[str, Any]]] = {}
    for slot in report["slots"]:
        nodes.setdefault(slot["node"], []).append(slot)
    most = 4
    for node, slots in list(nodes.items())[:most]:
        for slot in slots:
            rank = slot.get("rank")
            table.add_row(str(node), str(slot["gpu"]), "" if rank is None else str(rank), _joined(slot["engines"]))
    if len(nodes) > most:
        table.add_row(f"… {len(nodes) - most} more", "", "", "")
    return table


def _chosen(choices: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("Chosen, since the spec leaves it out", "field", "value", "why")
    for choice in choices:
        table.add_row(choice["field"], str(choice["value"]), choice["why"])
    return table


def _memory(memory: Mapping[str, Any]) -> Table:
    size = f"{memory['perGpuGiB']:g} GiB" + (" assumed: --gpu-memory says otherwise" if memory["assumed"] else "")
    table = _table(f"Memory of the slot that needs most, estimated ({size})", "when", "for", "GiB")
    table.columns[2].justify = "right"
    residence = memory["residence"]
    done = [
        said
        for key, said in (
            ("sleeps", "ranks and engines leave the GPU to each other in turn"),
            ("frozenLeave", "frozen models leave the GPU while others train"),
            ("gradientCheckpointing", "activations are recomputed"),
        )
        if residence[key]
    ]
    table.caption = f"So that it fits: {'; '.join(done)}" if done else None
    table.caption_justify = "left"
    for phase, total in memory["totalGiB"].items():
        parts = [part for part in memory["parts"] if part["phase"] == phase and part["GiB"] > 0]
        for i, part in enumerate(parts):
            table.add_row(phase if i == 0 else "", part["name"], f"{part['GiB']:.3g}")
        if parts:
            table.add_row("", "all together", Text(f"{total:.3g}", "bold"), end_section=True)
    return table


def _deepspeed(models: Mapping[str, Any]) -> RenderableType:
    """The first model's settings, and where those of the others differ."""
    tree = Tree(Text("DeepSpeed's settings", "bold"))
    (first, settings), *others = models.items()
    _branch(tree.add(first), settings)
    for name, other in others:
        _branch(tree.add(f"{name}, otherwise as {first}"), _difference(other, settings))
    return tree


def _difference(settings: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without those that are known."""
    out: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and isinstance(known.get(name), Mapping):
            if inner := _difference(value, known[name]):
                out[name] = inner
        elif name not in known or known[name] != value:
            out[name] = value
    return out


def _branch(tree: Tree, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            _branch(tree.add(name), value)
        else:
            tree.add(f"{name}: {value}")


def _joined(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _count(parameters: int) -> str:
    for size, unit in ((10**9, "billion"), (10**6, "million")):
        if parameters >= size:
            return f"{parameters / size:.3g} {unit}"
    return str(parameters)
