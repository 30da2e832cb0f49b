"""The pod templates of head and workers.

Containers keep to the restricted Pod Security Standard; the security context stands at the container, since the init
container that KubeRay adds copies that of the Ray container and nothing of the pod's.
"""

from collections.abc import Mapping
from typing import Any

from simplerl_api import credentials, names
from simplerl_api.mounts import CHECKPOINT_MOUNT, HUB_CACHE, RUN_FOLDER, SCRATCH, SHARED_MEMORY, reward_code_folder
from simplerl_api.progress import PORT, PORT_NAME
from simplerl_api.spec.cluster import Pods, Resources, Volume
from simplerl_api.spec.job import Spec
from simplerl_api.spec.reference import ConfigMapKeyRef, SecretKeyRef
from simplerl_operator.build import metadata, scheduling
from simplerl_operator.observe import pods
from simplerl_operator.observe.job import Job

USER = 1000
DASHBOARD_PORT = 8265
METRICS_PORT = 8080
"""Ray's metrics, on every pod."""
_AGENT_PORT = 52365
"""Ray's agent: its /api/healthz needs no token (Ray 2.53 and newer)."""
_GRACE_SECONDS = 30
"""Seconds that a pod has to end after its drain."""


def head(job: Job) -> dict[str, Any]:
    """The head's template: Ray's own services and the driver."""
    assert job.spec is not None
    assert job.plan is not None
    ports = (
        ("gcs-server", 6379),
        ("dashboard", DASHBOARD_PORT),
        ("client", 10001),
        ("metrics", METRICS_PORT),
        (PORT_NAME, PORT),
    )
    container = _container(job, "ray-head", job.plan.head_resources, {}, credentials.variables(job.spec))
    container["ports"] = [{"name": name, "containerPort": port} for name, port in ports]
    container["lifecycle"] = _drain(job)
    code = _reward_code(job.spec)
    container["volumeMounts"] += [
        {"name": f"reward-{i}", "mountPath": reward_code_folder(i), "readOnly": True} for i in code
    ]
    template = _template(job, pods.HEAD, job.cluster.head, container)
    template["spec"]["volumes"] += [
        {"name": f"reward-{i}", "configMap": {"name": ref.name, "items": [{"key": ref.key, "path": ref.key}]}}
        for i, ref in code.items()
    ]
    return template


def worker(job: Job, *, passing: bool = False) -> dict[str, Any]:
    """A worker's template: ranks and engines; `passing`: engines alone, which come and go."""
    assert job.spec is not None
    assert job.plan is not None
    cluster = job.cluster
    gpus = {} if cluster.cpu_only else {cluster.gpu_resource: str(job.plan.gpus_per_node)}
    container = _container(job, "ray-worker", job.plan.worker_resources, gpus, credentials.hub_variables(job.spec))
    container["ports"] = [{"name": "metrics", "containerPort": METRICS_PORT}]
    if not (passing or job.engines_apart):  # a pod without ranks may go while training goes on
        container["lifecycle"] = _drain(job)
    template = _template(job, pods.WORKER, cluster.workers, container)
    if passing:  # it drains nothing, and KubeRay makes no other pod of its group until it is gone
        template["spec"]["terminationGracePeriodSeconds"] = _GRACE_SECONDS
    return template


def _drain(job: Job) -> dict[str, Any]:
    """Before a pod is ended the driver saves its last finished step. A command, since the request needs the token,
    which an httpGet of the pod's manifest would show to everybody who may read pods."""
    assert job.spec is not None
    seconds = ["--seconds", str(job.spec.recovery.drain_seconds)]
    return {"preStop": {"exec": {"command": ["python", "-m", "simplerl_trainer.prestop", *seconds]}}}


def _template(job: Job, role: str, where: Pods, container: dict[str, Any]) -> dict[str, Any]:
    assert job.spec is not None
    cluster = job.cluster
    spec: dict[str, Any] = {
        # a container that came back in place would be an empty Ray node that passes for the old one
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": job.spec.recovery.drain_seconds + _GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": _volumes(job),
    }
    optional = {
        "nodeSelector": dict(where.node_selector),
        "tolerations": [dict(toleration) for toleration in where.tolerations],
        "imagePullSecrets": [{"name": secret.name} for secret in cluster.image_pull_secrets],
        "priorityClassName": cluster.priority_class_name,
        "schedulerName": cluster.scheduler_name,
    }
    return {
        "metadata": {
            "labels": {**scheduling.pod_labels(job), **metadata.labels(job), names.LABEL_ROLE: role},
            "annotations": {
                **scheduling.pod_annotations(job, role),
                # an autoscaler that moved one pod would end the whole attempt
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "karpenter.sh/do-not-disrupt": "true",
            },
        },
        "spec": spec | {name: value for name, value in optional.items() if value},
    }


def _reward_code(spec: Spec) -> dict[int, ConfigMapKeyRef]:
    """The code of rewards that comes from ConfigMaps, by the reward's place in the list."""
    return {i: r.python.config_map for i, r in enumerate(spec.rewards) if r.python and r.python.config_map}


def _container(
    job: Job, name: str, resources: Resources, gpus: dict[str, str], secrets: Mapping[str, SecretKeyRef]
) -> dict[str, Any]:
    assert job.spec is not None
    assert job.plan is not None
    given = {
        "requests": {**resources.requests, **gpus},
        "limits": {**resources.limits, **gpus},
    }
    return {
        "name": name,
        "image": job.plan.image,
        "imagePullPolicy": "IfNotPresent",
        # the last lines of a container that ended by itself come with its pod's status, and outlive it
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": _environment(job.spec, secrets),
        "resources": {kind: amounts for kind, amounts in given.items() if amounts},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": _mounts(job.spec),
        **_probes(),
    }


def _environment(spec: Spec, secrets: Mapping[str, SecretKeyRef]) -> list[dict[str, Any]]:
    """The container's variables; the job's own (cluster.env) take the place of ours, since a name may stand once."""
    ours: list[dict[str, Any]] = [
        {"name": "HOME", "value": "/tmp/home"},
        {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"},
        *_hub(spec),
        *(
            {"name": variable, "valueFrom": {"secretKeyRef": {"name": ref.name, "key": ref.key}}}
            for variable, ref in secrets.items()
        ),
    ]
    own = {variable.name: {"name": variable.name, "value": variable.value} for variable in spec.cluster.env}
    return [variable for variable in ours if variable["name"] not in own] + list(own.values())


def _hub(spec: Spec) -> list[dict[str, str]]:
    """Variables for what comes from a hub."""
    found = []
    if credentials.uses_hub(spec):
        found.append({"name": "HF_HUB_OFFLINE", "value": "0"})  # the CPU image keeps off the network
    if spec.model.cache_claim_name is not None:
        found.append({"name": "HF_HOME", "value": HUB_CACHE})
    return found


def _probes() -> dict[str, Any]:
    """KubeRay's own probes wait 10 s and ask every 5 s, which costs a start about 20 s. Once Ray is up they are slow
    and patient: training may keep every core busy, and a failed liveness probe ends the attempt."""
    return {
        "startupProbe": _probe(period=1, timeout=5, failures=900),
        "readinessProbe": _probe(period=5, timeout=5, failures=12),
        "livenessProbe": _probe(period=15, timeout=10, failures=40),
    }


def _probe(period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": "/api/healthz", "port": _AGENT_PORT},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }


def _volumes(job: Job) -> list[dict[str, Any]]:
    assert job.spec is not None
    assert job.plan is not None
    claim = job.spec.checkpoint.claim_name
    checkpoint: dict[str, Any] = {"emptyDir": {}} if claim is None else {"persistentVolumeClaim": {"claimName": claim}}
    return [
        {"name": "tmp", "emptyDir": {"sizeLimit": "4Gi" if job.spec.cluster.cpu_only else "64Gi"}},
        # KubeRay leaves its own shared memory out where something is mounted at /dev/shm
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": job.plan.shm_size}},
        {"name": "run", "configMap": {"name": job.cluster_name}},
        {"name": "checkpoints", **checkpoint},
        *({"name": "hub-cache", "persistentVolumeClaim": {"claimName": name}} for name in _cache(job.spec)),
        *({"name": f"volume-{i}", **_source(volume)} for i, volume in enumerate(job.spec.cluster.volumes)),
    ]


def _source(volume: Volume) -> dict[str, Any]:
    if volume.claim_name is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim_name}}
    if volume.config_map_name is not None:
        return {"configMap": {"name": volume.config_map_name}}
    return {"secret": {"secretName": volume.secret_name}}


def _cache(spec: Spec) -> list[str]:
    """The claim that keeps what is downloaded, if there is one."""
    return [spec.model.cache_claim_name] if spec.model.cache_claim_name is not None else []


def _mounts(spec: Spec) -> list[dict[str, Any]]:
    return [
        {"name": "tmp", "mountPath": SCRATCH},
        {"name": "shm", "mountPath": SHARED_MEMORY},
        {"name": "run", "mountPath": RUN_FOLDER, "readOnly": True},
        {"name": "checkpoints", "mountPath": CHECKPOINT_MOUNT},
        *({"name": "hub-cache", "mountPath": HUB_CACHE} for _ in _cache(spec)),
        *(
            {"name": f"volume-{i}", "mountPath": volume.mount_path, "readOnly": volume.read_only}
            for i, volume in enumerate(spec.cluster.volumes)
        ),
    ]
