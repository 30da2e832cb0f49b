"""The end of a job that failed."""

from simplerl_api.status import Phase
from simplerl_operator.decide.decision import Decision
from simplerl_operator.observe.observation import Observation


def fail(seen: Observation, reason: str, message: str) -> Decision:
    """Failed for a reason, with the driver's last lines as far as they are known."""
    log: tuple[str, ...] = ()
    if seen.progress is not None and seen.progress.log:
        log = tuple(seen.progress.log)
    if seen.head is not None and seen.head.ray_job is not None:
        final = seen.head.ray_job.final
        log = (tuple(final.log) if final is not None else ()) or seen.head.ray_job.log or log
    return Decision(phase=Phase.FAILED, reason=reason, message=message, cluster_ready=False, log=log)
