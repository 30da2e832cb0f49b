"""Requests and limits of containers for which a spec names none."""

from simplerl_api.job_defaults import JobDefaults
from simplerl_api.spec.cluster import Resources


def of_head(cpu_only: bool) -> Resources:
    """Those of the head's Ray container."""
    if cpu_only:
        return Resources(requests={"cpu": "200m", "memory": "1Gi"}, limits={"memory": "4Gi"})
    return Resources(requests={"cpu": "4", "memory": "16Gi"}, limits={"memory": "32Gi"})


def of_worker(cpu_only: bool, gpus: int, defaults: JobDefaults | None) -> Resources:
    """Those of a worker's Ray container with so many GPUs, or the CPU slots that stand for them."""
    if cpu_only:
        return Resources(requests={"cpu": f"{200 * gpus}m", "memory": f"{gpus}Gi"}, limits={"memory": f"{4 * gpus}Gi"})
    stated = Resources(
        requests={"cpu": str(8 * gpus), "memory": f"{64 * gpus}Gi"}, limits={"memory": f"{128 * gpus}Gi"}
    )
    return stated if defaults is None else defaults.worker_resources(stated, gpus)
