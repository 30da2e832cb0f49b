"""Where a head is reached: at its pod's IP, since DNS answers before the pod serves and after it is gone."""

from simplerl_api.progress import PORT
from simplerl_operator.build.pod import DASHBOARD_PORT
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.pods import Pod


def dashboard(job: Job, pod: Pod, stand_in: str | None) -> str:
    """Base URL of the dashboard; `stand_in` is the setting that takes the place of all heads."""
    return _url(job, pod, stand_in, DASHBOARD_PORT)


def progress(job: Job, pod: Pod, stand_in: str | None) -> str:
    """Base URL of the driver's /progress."""
    return _url(job, pod, stand_in, PORT)


def _url(job: Job, pod: Pod, stand_in: str | None, port: int) -> str:
    if stand_in is not None:
        return stand_in.replace("{namespace}", job.namespace).replace("{cluster}", job.cluster_name).rstrip("/")
    address = pod.address or "0.0.0.0"
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
