"""Logs out of Ray's dashboard (https://docs.ray.io/en/latest/ray-observability/reference/api.html): what the driver and
the actors of a living cluster write."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import aiohttp

from kubectl_simplerl.head import Head
from kubectl_simplerl.outcome import Fault

RANK_CLASS = "RankActor"
"""The trainer's actor of a training rank."""
_ACTORS = 10_000
"""As many as Ray's dashboard lists at most."""
_FOLLOW_SECONDS = "0.5"
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=10)


@dataclass(frozen=True)
class Actor:
    """A process of a Ray cluster."""

    id: str
    label: str


async def ranks(head: Head) -> list[Actor]:
    """The training ranks that live, by node and process. Raises Fault where there are none."""
    url = f"{head.dashboard}/api/v0/actors"
    document = await head.document(url, {"limit": str(_ACTORS)})
    try:
        found = document["data"]["result"]["result"]
    except (KeyError, TypeError):
        raise Fault(f"{url} answers with something that is no list of actors") from None
    ranks = [actor for actor in found if actor["class_name"] == RANK_CLASS and actor["state"] == "ALIVE"]
    if not ranks:
        raise Fault("the job has no training ranks: they come once its engines have started")
    ranks.sort(key=lambda actor: (actor["node_id"], actor["pid"]))
    # pids are those of each pod's own: the node tells them apart
    return [Actor(actor["actor_id"], f"node {actor['node_id'][:6]} pid {actor['pid']}") for actor in ranks]


async def lines(head: Head, what: Mapping[str, str], *, follow: bool, tail: int) -> AsyncIterator[str]:
    """The lines of a log, and with `follow` what comes after until the head ends. `what`: submission_id, or actor_id
    and suffix. `tail`: newest lines, -1 for all. Raises Fault."""
    url = f"{head.dashboard}/api/v0/logs/{'stream' if follow else 'file'}"
    query = {**what, "lines": str(tail), **({"interval": _FOLLOW_SECONDS} if follow else {})}
    try:
        async with head.session.get(
            url, params=query, headers=head.headers, timeout=_TIMEOUT, allow_redirects=False
        ) as answer:
            if answer.status != 200:
                said = " ".join((await answer.text()).split())
                raise Fault(f"{url} answers {answer.status}: {said[:300]}")
            rest = b""
            async for chunk in answer.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line.decode(errors="replace")
            if rest:
                yield rest.decode(errors="replace")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        if not follow:
            raise Fault(f"{url} does not answer: {str(error) or 'timed out'}") from error
        # the head went while it was followed: that is the end of the log
        await asyncio.sleep(0)
