"""The cluster that kubectl's flags name, reached with the user's rights."""

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubernetes.aio import client, config
from kubernetes.aio.config import ConfigException

from kubectl_simplerl.outcome import Fault
from simplerl_api import PLURAL
from simplerl_operator.kinds import JOB
from simplerl_operator.kubernetes_api import Document, KubernetesApi

FIELD_MANAGER = "kubectl-simplerl"


@dataclass(frozen=True, kw_only=True)
class Flags:
    """kubectl's flags; None is kubectl's own default."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None

    def arguments(self) -> Sequence[str]:
        """The flags for kubectl itself, without the namespace."""
        given = (("context", self.context), ("kubeconfig", self.kubeconfig))
        return [f"--{name}={value}" for name, value in given if value is not None]


@dataclass(frozen=True)
class Cluster:
    """One API server, and the namespace that is meant."""

    api: KubernetesApi
    namespace: str
    flags: Flags

    async def job(self, name: str) -> Document:
        """The job of this name. Raises Fault where there is none."""
        found = await self.api.get(JOB, self.namespace, name)
        if found is None:
            raise Fault(f"there is no SimpleRLJob {name} in namespace {self.namespace}")
        return found

    def kubectl(self, *arguments: str) -> list[str]:
        """A command line of kubectl for this cluster and namespace. Raises Fault where there is no kubectl."""
        program = shutil.which("kubectl")
        if program is None:
            raise Fault("there is no kubectl on PATH: install it")
        return [program, *self.flags.arguments(), f"--namespace={self.namespace}", *arguments]


@asynccontextmanager
async def connected(flags: Flags) -> AsyncIterator[Cluster]:
    """The cluster while the context is open. Raises Fault where the flags name none, or it does not serve our jobs."""
    configuration = client.Configuration()
    try:
        namespace = await _load(flags, configuration)
    except (ConfigException, OSError) as error:
        raise Fault(f"the kubeconfig cannot be used: {error}") from error
    api = KubernetesApi(configuration)
    try:
        if not await api.serves(JOB):
            raise Fault(f"the API server {api.server} does not know {PLURAL}: install the chart simplerl-operator")
        yield Cluster(api, flags.namespace or namespace, flags)
    finally:
        await api.close()


async def _load(flags: Flags, configuration: client.Configuration) -> str:
    """Fills the configuration; the namespace of the context."""
    await config.load_kube_config(  # type: ignore[no-untyped-call]
        config_file=flags.kubeconfig, context=flags.context, client_configuration=configuration
    )
    contexts, current = config.list_kube_config_contexts(config_file=flags.kubeconfig)  # type: ignore[no-untyped-call]
    chosen = next((c for c in contexts if c["name"] == flags.context), current)
    return str(chosen["context"].get("namespace") or "default")


@asynccontextmanager
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A session for what answers on this machine or in the pods; proxies of the environment are not meant for them."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30, connect=5)) as session:
        yield session
