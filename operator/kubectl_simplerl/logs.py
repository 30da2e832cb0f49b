"""What `logs` shows: from the head while it lives, from the claim after that, or the lines that the object holds."""

import asyncio
import sys
from collections.abc import Callable

from kubectl_simplerl import commands, head, ray_logs, reader, report
from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.outcome import Fault
from simplerl_api import names
from simplerl_operator.kubernetes_api import Document

Write = Callable[[str, str], None]
"""Takes a line: whose it is (empty for the driver), and its text."""
_LOOK_SECONDS = 2.0
_LAST_LINES_SECONDS = 5.0
"""Seconds that a followed log may go on after the job is over."""


async def show(
    cluster: Cluster, name: str, write: Write, *, ranks: bool, follow: bool, tail: int, seconds: float
) -> None:
    """Writes every line. Raises Fault."""
    job = await cluster.job(name)
    if not report.over(job):
        try:
            async with head.reached(cluster, job) as reached:
                await _living(cluster, job, reached, write, ranks=ranks, follow=follow, tail=tail)
            return
        except Fault:
            # it may have ended while its head was looked for
            job = await cluster.job(name)
            if not report.over(job):
                raise
    if ranks:
        raise Fault(f"job {name} is {report.phase(job)}: what its ranks wrote went with their pods")
    await _ended(cluster, job, write, tail=tail, seconds=seconds)


async def _living(
    cluster: Cluster, job: Document, reached: head.Head, write: Write, *, ranks: bool, follow: bool, tail: int
) -> None:
    if not ranks:
        attempt = job["status"].get("attempt", 1)
        driver = names.cluster(job["metadata"]["name"], job["metadata"]["uid"], attempt)
        sources = [("", {"submission_id": driver})]
    else:
        actors = await ray_logs.ranks(reached)
        sources = [(a.label, {"actor_id": a.id, "suffix": suffix}) for a in actors for suffix in ("out", "err")]
    copies = [
        asyncio.create_task(_copy(reached, source, what, write, follow=follow, tail=tail)) for source, what in sources
    ]
    end = asyncio.create_task(_until_over(cluster, job["metadata"]["name"])) if follow else None
    try:
        if end is None:
            await asyncio.gather(*copies)
            return
        copying = asyncio.gather(*copies)
        await asyncio.wait((copying, end), return_when=asyncio.FIRST_COMPLETED)
        if not copying.done():
            await asyncio.wait((copying,), timeout=_LAST_LINES_SECONDS)
        if copying.done():
            copying.result()
    finally:
        for task in (*copies, *([end] if end is not None else [])):
            task.cancel()
        await asyncio.gather(*copies, *([end] if end is not None else []), return_exceptions=True)


async def _copy(
    reached: head.Head, source: str, what: dict[str, str], write: Write, *, follow: bool, tail: int
) -> None:
    async for line in ray_logs.lines(reached, what, follow=follow, tail=tail):
        write(source, line)


async def _until_over(cluster: Cluster, name: str) -> None:
    while True:
        if report.over(await commands.patiently(cluster, name)):
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _ended(cluster: Cluster, job: Document, write: Write, *, tail: int, seconds: float) -> None:
    name, status = job["metadata"]["name"], job["status"]
    if job["spec"].get("checkpoint", {}).get("claimName") is None or "plan" not in status:
        kept = status.get("failure", {}).get("log", "").splitlines()
        if not kept:
            raise Fault(f"job {name} is {report.phase(job)} and had no claim: its log went with its pods")
        print("the pods are gone and there is no claim: the last lines that the object holds", file=sys.stderr)
        for line in kept if tail < 0 else kept[len(kept) - tail :]:
            write("", line)
        return
    async with reader.ended(cluster, job, reader.LOG_FILE, tail, seconds) as (pod, well):
        text = await _pod_log(cluster, pod, seconds)
        if not well:
            claim = job["spec"]["checkpoint"]["claimName"]
            raise Fault(f"{reader.LOG_FILE} cannot be read from claim {claim}: {' '.join(text.split())[-500:]}")
        for line in text.split("\n")[:-1]:
            write("", line)


async def _pod_log(cluster: Cluster, pod: str, seconds: float) -> str:
    """What a pod that has ended printed. Raises Fault."""
    process = await asyncio.create_subprocess_exec(
        *cluster.kubectl("logs", f"pod/{pod}"),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, said = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Fault(f"timed out after {seconds:.0f} s reading what pod {pod} printed") from None
    if process.returncode != 0:
        raise Fault(f"what pod {pod} printed cannot be read: {' '.join(said.decode(errors='replace').split())}")
    return out.decode(errors="replace")
