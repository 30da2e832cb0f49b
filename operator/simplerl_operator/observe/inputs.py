"""Looks for what a spec refers to, before anything is made of it."""

from simplerl_api import credentials, reward_code
from simplerl_api.spec.job import Spec
from simplerl_api.spec.reference import ConfigMapKeyRef
from simplerl_operator.kinds import CLAIM, CONFIG_MAP, SECRET
from simplerl_operator.kubernetes_api import KubernetesApi, Refused
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.observation import Inputs
from simplerl_operator.observe.rehearsal import Rehearsals

_SHARED = "ReadWriteMany"


def claims(spec: Spec) -> list[str]:
    """The PersistentVolumeClaims that the pods mount."""
    return list(filter(None, [*_written(spec).values(), *(v.claim_name for v in spec.cluster.volumes)]))


def _written(spec: Spec) -> dict[str, str | None]:
    """Claims into which every pod writes, by their fields."""
    return {"checkpoint.claimName": spec.checkpoint.claim_name, "model.cacheClaimName": spec.model.cache_claim_name}


async def look(api: KubernetesApi, job: Job, rehearsals: Rehearsals) -> Inputs:
    """The first thing that is missing, if any; else the API server's answer to a rehearsal of the RayCluster."""
    assert job.spec is not None
    assert job.plan is not None
    volumes, written = job.spec.cluster.volumes, _written(job.spec)
    for name in claims(job.spec):
        claim = await api.get(CLAIM, job.namespace, name)
        if claim is None:
            return Inputs(missing_claim=name)
        modes = claim["spec"].get("accessModes") or []
        field = next((field for field, claim_name in written.items() if claim_name == name), None)
        if field is not None and job.plan.nodes > 1 and _SHARED not in modes:
            return Inputs(unshared_claim=(field, name, ", ".join(modes)))
    for name in filter(None, (v.config_map_name for v in volumes)):
        if await api.get(CONFIG_MAP, job.namespace, name) is None:
            return Inputs(missing_config_map=name)
    for i, reward in enumerate(job.spec.rewards):
        if reward.python is not None and (ref := reward.python.config_map) is not None:
            config_map = await api.get(CONFIG_MAP, job.namespace, ref.name)
            if config_map is None:
                return Inputs(missing_config_map=ref.name)
            if (text := config_map.get("data", {}).get(ref.key)) is None:
                return Inputs(bad_code=f"{_code(i, ref)} is not among that ConfigMap's keys: add it")
            if (fault := reward_code.fault(text, reward.python.function)) is not None:
                return Inputs(bad_code=f"{_code(i, ref)} {fault}")
    tokens = (ref.name for ref in credentials.variables(job.spec).values())
    for name in filter(None, [*(v.secret_name for v in volumes), *tokens]):
        if not await _secret_exists(api, job.namespace, name):
            return Inputs(missing_secret=name)
    return Inputs(rejection=await rehearsals.rejection(job))


def _code(index: int, ref: ConfigMapKeyRef) -> str:
    return f"rewards[{index}].python.configMap: {ref.key} of ConfigMap {ref.name}"


async def _secret_exists(api: KubernetesApi, namespace: str, name: str) -> bool:
    """Asks without the right to read Secrets: the rehearsal of a creation is refused where one of that name exists."""
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
    try:
        await api.create(SECRET, namespace, manifest, rehearse=True)
    except Refused:
        return True  # it exists, or a quota or webhook does not let us ask: then kubelet tells
    return False
