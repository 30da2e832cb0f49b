"""`python -m simplerl_operator.installation`: what `helm test` runs. Asks, with the operator's own rights, whether
everything that the operator needs is served, and the operator itself whether it is well."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import aiohttp

from simplerl_operator import settings
from simplerl_operator.kinds import JOB, RAY_CLUSTER
from simplerl_operator.kubernetes_api import KubernetesApi, Refused, Unavailable

_SECONDS = 20.0
"""How long the operator may take to answer."""


class Fault(Exception):
    """Something of the installation does not work; the message says what, and what to do."""


async def checks(namespaces: tuple[str, ...], operator_url: str | None) -> AsyncIterator[str]:
    """A sentence for each thing that works. Raises Fault at the first that does not."""
    api = await KubernetesApi.connect()
    try:
        for kind, who in ((JOB, "the chart's CRD"), (RAY_CLUSTER, "KubeRay 1.6 or newer")):
            if not await api.serves(kind):
                raise Fault(f"the API server does not know {kind.plural}.{kind.group}: install {who}")
            for namespace in namespaces or (None,):
                await api.list(kind, namespace)
                yield f"{kind.plural}.{kind.group} can be read in {namespace or 'all namespaces'}"
    except Refused as refusal:
        raise Fault(f"the operator's service account lacks a right: {refusal}; install the chart's roles") from None
    except Unavailable as trouble:
        raise Fault(f"the API server {api.server} does not answer: {trouble}") from None
    finally:
        await api.close()
    if operator_url is not None:
        await _ask_operator(operator_url)
        yield f"the operator at {operator_url} is well"


async def _ask_operator(url: str) -> None:
    limit = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=limit) as session, session.get(f"{url}/healthz") as response:
            text = (await response.text()).strip()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Fault(f"the operator at {url} does not answer: {error or f'nothing within {_SECONDS:.0f} s'}") from None
    if response.status != 200:
        raise Fault(f"the operator at {url} is not well: {text}")


async def _main() -> None:
    given = settings.read()
    async for sentence in checks(given.namespaces, os.environ.get("SIMPLERL_OPERATOR_URL")):
        print(sentence, flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except (Fault, settings.InvalidSettings) as fault:
        sys.exit(str(fault))
