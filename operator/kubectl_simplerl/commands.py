"""What `list`, `status`, `suspend` and `resume` read and write."""

import asyncio
import time
from typing import Any

from rich.console import Console
from rich.live import Live as LivePage

from kubectl_simplerl import head, report, table
from kubectl_simplerl.cluster import FIELD_MANAGER, Cluster
from kubectl_simplerl.head import Live
from kubectl_simplerl.outcome import Exit, Fault
from simplerl_api import names
from simplerl_api.status import Phase
from simplerl_operator.kinds import EVENT, JOB, POD
from simplerl_operator.kubernetes_api import Document, Unavailable

_POLL_SECONDS = 2.0
_PATIENCE_SECONDS = 60.0
"""Seconds for which an API server that does not answer is asked again, while something waits."""


async def rows(cluster: Cluster, *, all_namespaces: bool) -> list[dict[str, str]]:
    """A line a job, by namespace and name."""
    now = time.time()
    jobs = await cluster.api.list(JOB, None if all_namespaces else cluster.namespace)
    return sorted((report.row(job, now) for job in jobs), key=lambda row: (row["namespace"], row["name"]))


async def status(cluster: Cluster, name: str) -> tuple[dict[str, Any], Exit]:
    """The report of a job, and the exit code that says whether it is well."""
    job = await cluster.job(name)
    live = await head.live_or_why_not(cluster, job) if report.phase(job) == Phase.TRAINING else Live()
    return await _report(cluster, job, live)


async def wait(cluster: Cluster, name: str, seconds: float | None) -> None:
    """Waits until a job ends or is refused. Raises Fault after `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        job = await patiently(cluster, name)
        if report.over(job) or report.refused(job):
            return
        if deadline is not None and time.monotonic() >= deadline:
            raise Fault(f"timed out after {seconds:.0f} s: job {name} is {report.phase(job) or 'not looked at yet'}")
        await asyncio.sleep(_POLL_SECONDS)


async def watch(cluster: Cluster, name: str, seconds: float | None) -> Exit:
    """Keeps the page of a job on the terminal until it ends."""
    console = Console(highlight=False)
    deadline = None if seconds is None else time.monotonic() + seconds
    with LivePage(console=console, auto_refresh=False, vertical_overflow="visible") as page:
        while True:
            job = await patiently(cluster, name)
            if report.phase(job) == Phase.TRAINING:
                answer = await _watch_training(cluster, name, page, console, deadline)
                if answer is not None:
                    return answer
                continue
            found, answer = await _report(cluster, job, Live())
            page.update(table.status(found, console.width), refresh=True)
            if report.over(job) or (deadline is not None and time.monotonic() >= deadline):
                return answer
            await asyncio.sleep(_POLL_SECONDS)


async def _watch_training(
    cluster: Cluster, name: str, page: LivePage, console: Console, deadline: float | None
) -> Exit | None:
    """Follows the driver over one forwarded port while the job trains; None once it does not any more."""
    job = await patiently(cluster, name)
    try:
        async with head.reached(cluster, job) as reached:
            while report.phase(job) == Phase.TRAINING:
                found, answer = await _report(cluster, job, await head.live(reached))
                page.update(table.status(found, console.width), refresh=True)
                if deadline is not None and time.monotonic() >= deadline:
                    return answer
                await asyncio.sleep(_POLL_SECONDS)
                job = await patiently(cluster, name)
    except Fault as fault:
        found, answer = await _report(cluster, job, Live(silence=str(fault)))
        page.update(table.status(found, console.width), refresh=True)
        if deadline is not None and time.monotonic() >= deadline:
            return answer
        await asyncio.sleep(_POLL_SECONDS)
    return None


async def set_suspend(cluster: Cluster, name: str, value: bool) -> bool:
    """Sets spec.suspend; whether that changed anything. Raises Fault for a job that is over."""
    job = await cluster.job(name)
    if report.over(job):
        raise Fault(f"job {name} is {report.phase(job)}: there is nothing to {'suspend' if value else 'resume'}")
    if bool(job["spec"].get("suspend", False)) is value:
        return False
    await cluster.api.merge(JOB, cluster.namespace, name, {"spec": {"suspend": value}}, FIELD_MANAGER)
    return True


async def _report(cluster: Cluster, job: Document, live: Live) -> tuple[dict[str, Any], Exit]:
    uid = job["metadata"]["uid"]
    pods, own = await asyncio.gather(
        cluster.api.list(POD, cluster.namespace, labels=f"{names.LABEL_UID}={uid}"),
        cluster.api.list(EVENT, cluster.namespace, fields=f"involvedObject.uid={uid}"),
    )
    warnings = await cluster.api.list(EVENT, cluster.namespace, fields="type=Warning")
    of_pods = {pod["metadata"]["uid"] for pod in pods}
    events = [*own, *(event for event in warnings if event["involvedObject"].get("uid") in of_pods)]
    found = report.report(job, pods, events, live, time.time())
    bad = report.phase(job) == Phase.FAILED or report.refused(job)
    return found, Exit.NO if bad else Exit.OK


async def patiently(cluster: Cluster, name: str) -> Document:
    """The job; an API server that does not answer is asked again for a while."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await cluster.job(name)
        except Unavailable:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_POLL_SECONDS)
