"""Who may reach the pods of a job (https://kubernetes.io/docs/concepts/services-networking/network-policies/).

Only what comes in is limited: models, data and trackers may be anywhere. kubelet's probes and `kubectl port-forward`
come from the pod's own node, which policies do not keep out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simplerl_api import names
from simplerl_api.progress import PORT
from simplerl_operator.build import metadata
from simplerl_operator.build.pod import DASHBOARD_PORT, METRICS_PORT
from simplerl_operator.observe.job import Job

Peer = Mapping[str, Any]
"""A NetworkPolicyPeer: namespaceSelector, podSelector or ipBlock."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Who is let in beside the job's own pods."""

    operator_namespace: str
    """Namespace of the operator, which reads dashboard and /progress."""
    dashboard_from: Sequence[Peer] = ()
    """Who else may reach dashboard and /progress; both demand the job's token besides."""
    metrics_from: Sequence[Peer] = ()
    """Who may reach the metrics of Ray and of the driver, which demand no token."""


def network_policy(job: Job, reach: Reach) -> dict[str, Any]:
    """One policy for all attempts of a job; it bears the name of the job's Secret."""
    operator = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": reach.operator_namespace}}}
    ingress: list[dict[str, Any]] = [
        {"from": [_own(job)]},  # Ray's parts, NCCL and gloo take ports as they come
        {"from": [operator, *map(dict, reach.dashboard_from)], "ports": [_tcp(DASHBOARD_PORT), _tcp(PORT)]},
    ]
    if reach.metrics_from:  # an empty list of peers would let everybody in
        ingress.append({"from": [*map(dict, reach.metrics_from)], "ports": [_tcp(METRICS_PORT), _tcp(PORT)]})
    labels = {k: v for k, v in metadata.labels(job).items() if k != names.LABEL_ATTEMPT}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata.child(job, names.secret(job.name, job.uid), labels),
        "spec": {**_own(job), "policyTypes": ["Ingress"], "ingress": ingress},
    }


def _own(job: Job) -> dict[str, Any]:
    """Selects the pods of a job, whatever their attempt."""
    return {"podSelector": {"matchLabels": {names.LABEL_UID: job.uid}}}


def _tcp(port: int) -> dict[str, Any]:
    return {"protocol": "TCP", "port": port}
