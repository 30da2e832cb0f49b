"""Posts Events."""

import logging

from simplerl_api import API_VERSION, KIND
from simplerl_operator import clock
from simplerl_operator.decide.happenings import Happening
from simplerl_operator.kinds import EVENT
from simplerl_operator.kubernetes_api import FIELD_MANAGER, KubernetesApi, Refused, Unavailable
from simplerl_operator.observe.job import Job

_log = logging.getLogger(__name__)


async def post(api: KubernetesApi, job: Job, happening: Happening, now: float) -> None:
    """Posts one Event about a job. One that cannot be posted is logged and left: the status says the same."""
    time = clock.rfc3339(now)
    manifest = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{job.name}-", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": job.namespace,
            "name": job.name,
            "uid": job.uid,
            "resourceVersion": job.resource_version,
        },
        "type": "Warning" if happening.warning else "Normal",
        "reason": happening.reason,
        "message": happening.message,
        "source": {"component": FIELD_MANAGER},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    try:
        await api.create(EVENT, job.namespace, manifest)
    except (Refused, Unavailable) as error:
        _log.warning(
            "an Event could not be posted", extra={"job": job.name, "namespace": job.namespace, "why": str(error)}
        )
