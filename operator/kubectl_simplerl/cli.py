"""The commands; kubectl finds them by the name of the program, `kubectl-simplerl`."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

from kubectl_simplerl import commands, dashboard, doctor, logs, plan_command, table
from kubectl_simplerl.cluster import Cluster, Flags, connected
from kubectl_simplerl.outcome import Exit, Fault
from simplerl_operator.kubernetes_api import Refused, Unavailable

app = typer.Typer(
    name="kubectl-simplerl", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__
)

_PIPE_WIDTH = 500
"""Columns where nobody watches: programs that read tables want a job on one line."""


class Format(StrEnum):
    """How something is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


Name = Annotated[str, typer.Argument(metavar="JOB", help="Name of a SimpleRLJob.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace; else the context's.")]
Context = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig; else the current one.")]
Kubeconfig = Annotated[str | None, typer.Option("--kubeconfig", help="Path of the kubeconfig; else as kubectl's.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="table, wide or json.")]


@app.command("list")
def list_jobs(
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Jobs of all namespaces.")] = False,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """All jobs, a line each."""

    async def work(cluster: Cluster) -> Exit:
        rows = await commands.rows(cluster, all_namespaces=all_namespaces)
        if output is Format.JSON:
            _print_json(rows)
        elif rows:
            _print(table.listing(rows, all_namespaces=all_namespaces, wide=output is Format.WIDE))
        else:
            where = "any namespace" if all_namespaces else f"namespace {cluster.namespace}"
            typer.echo(f"there are no SimpleRLJobs in {where}", err=True)
        return Exit.OK

    _run(work, namespace, context, kubeconfig)


@app.command()
def status(
    name: Name,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the page up to date until the job ends.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end, then print.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds that --wait and --watch last at most.")] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Everything of one job on a page. Exit code 1: the job failed, or was refused."""

    async def work(cluster: Cluster) -> Exit:
        if wait:
            await commands.wait(cluster, name, timeout)
        if watch and output is not Format.JSON and sys.stdout.isatty():
            return await commands.watch(cluster, name, timeout)
        report, answer = await commands.status(cluster, name)
        if output is Format.JSON:
            _print_json(report)
        else:
            _print(table.status(report, _console().width if sys.stdout.isatty() else 80))
        return answer

    _run(work, namespace, context, kubeconfig)


@app.command("logs")
def show_logs(
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    ranks: Annotated[bool, typer.Option("--ranks", help="What the training ranks wrote.")] = False,
    tail: Annotated[int, typer.Option(min=-1, help="Newest lines; -1: all.")] = -1,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for the reader pod.")] = 120,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """What the driver or the ranks wrote. After the end, the driver's log is read from the claim by a short pod."""

    if tail == 0:
        raise typer.BadParameter("--tail is 0: give a number of lines from 1, or -1 for all")

    async def work(cluster: Cluster) -> Exit:
        write = _json_line if output is Format.JSON else _text_line
        await logs.show(cluster, name, write, ranks=ranks, follow=follow, tail=tail, seconds=timeout)
        return Exit.OK

    _run(work, namespace, context, kubeconfig)


@app.command("dashboard")
def open_dashboard(
    name: Name,
    port: Annotated[int, typer.Option(min=0, max=65534, help="Local port of the page; 0: a free one.")] = 0,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """The driver's live page and Ray's dashboard in a browser, until Ctrl-C."""

    async def work(cluster: Cluster) -> Exit:
        async with dashboard.served(cluster, name, port) as urls:
            if output is Format.JSON:
                _print_json(urls)
            else:
                typer.echo(f"live page:       {urls['page']}\nRay's dashboard: {urls['dashboard']}\nCtrl-C ends both.")
            sys.stdout.flush()
            await dashboard.until_over(cluster, name)
        typer.echo(f"job {name} has no head any more", err=True)
        return Exit.OK

    _run(work, namespace, context, kubeconfig)


@app.command()
def plan(
    name: Annotated[str | None, typer.Argument(metavar="[JOB]", help="A job of the cluster.")] = None,
    file: Annotated[Path | None, typer.Option("--filename", "-f", help="A job's YAML.", exists=True)] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """What would be made of a job, and whether its pods fit on the nodes as they are. Exit code 1: they do not."""
    if (name is None) == (file is None):
        raise typer.BadParameter("give the name of a job, or a file by -f")

    async def work(cluster: Cluster) -> Exit:
        found = await plan_command.of(cluster, name, file)
        if output is Format.JSON:
            _print_json(found)
        else:
            _print(plan_command.page(found))
        return Exit.OK if found["fits"] and not found["faults"] else Exit.NO

    _run(work, namespace, context, kubeconfig)


@app.command("doctor")
def walk(
    name: Name,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Why a job does not train: the first broken link, and what to do. Why it is slow: where its seconds go."""

    async def work(cluster: Cluster) -> Exit:
        found, answer = await doctor.examine(cluster, name)
        if output is Format.JSON:
            _print_json(found)
        else:
            _print(doctor.page(found))
        return answer

    _run(work, namespace, context, kubeconfig)


@app.command()
def suspend(
    name: Name,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Save and give the GPUs back; the job goes on from its checkpoint when it is resumed."""
    _set_suspend(name, True, output, namespace, context, kubeconfig)


@app.command()
def resume(
    name: Name,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Let a suspended job go on."""
    _set_suspend(name, False, output, namespace, context, kubeconfig)


def _set_suspend(
    name: str, value: bool, output: Format, namespace: str | None, context: str | None, kubeconfig: str | None
) -> None:
    async def work(cluster: Cluster) -> Exit:
        changed = await commands.set_suspend(cluster, name, value)
        word = "suspended" if value else "resumed"
        if output is Format.JSON:
            _print_json({"namespace": cluster.namespace, "name": name, "suspend": value, "changed": changed})
        else:
            typer.echo(f"simplerljob.simplerl.io/{name} {word}" if changed else f"job {name} is {word} already")
        return Exit.OK

    _run(work, namespace, context, kubeconfig)


def main() -> None:
    app()


def _run(
    work: Callable[[Cluster], Awaitable[Exit]], namespace: str | None, context: str | None, kubeconfig: str | None
) -> None:
    async def connect_and_work() -> Exit:
        async with connected(Flags(namespace=namespace, context=context, kubeconfig=kubeconfig)) as cluster:
            return await work(cluster)

    try:
        code = asyncio.run(connect_and_work())
    except Fault as fault:
        typer.echo(f"error: {fault}", err=True)
        code = fault.code
    except (Refused, Unavailable) as error:
        typer.echo(f"error: {error}", err=True)
        code = Exit.UNKNOWN
    except KeyboardInterrupt:
        code = Exit.OK
    if code:
        raise typer.Exit(int(code))


def _console() -> Console:
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_PIPE_WIDTH)


def _print(page: RenderableType) -> None:
    _console().print(page)


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=1))


def _text_line(source: str, line: str) -> None:
    print(f"[{source}] {line}" if source else line, flush=True)


def _json_line(source: str, line: str) -> None:
    print(json.dumps({"source": source or "driver", "line": line}), flush=True)


if __name__ == "__main__":
    main()
