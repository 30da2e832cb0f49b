"""Ports of a pod on this machine, through the API server: kubectl's own port-forward, which speaks whatever the
cluster's versions and proxies need."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from kubectl_simplerl.cluster import Cluster
from kubectl_simplerl.outcome import Fault

_OPEN_SECONDS = 20.0
_OPENED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)")


@asynccontextmanager
async def opened(cluster: Cluster, pod: str, ports: Sequence[int]) -> AsyncIterator[Mapping[int, int]]:
    """Local ports by the pod's, while the context is open. Raises Fault."""
    command = cluster.kubectl("port-forward", "--address=127.0.0.1", pod, *(f":{port}" for port in ports))
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    # it tells of each connection that fails: a pipe that nobody reads would fill and stop it
    drains: list[asyncio.Task[bytes]] = []
    try:
        found: dict[int, int] = {}
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                while len(found) < len(ports):
                    line = await process.stdout.readline()
                    if not line:
                        said = " ".join((await process.stderr.read()).decode(errors="replace").split())
                        raise Fault(f"ports of {pod} cannot be forwarded: {said}")
                    if match := _OPENED.search(line.decode(errors="replace")):
                        found[int(match[2])] = int(match[1])
        except TimeoutError:
            raise Fault(f"timed out after {_OPEN_SECONDS:.0f} s waiting for kubectl to forward {pod}") from None
        drains = [asyncio.create_task(stream.read()) for stream in (process.stdout, process.stderr)]
        yield found
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        for task in drains:
            task.cancel()
        await asyncio.gather(*drains, return_exceptions=True)
