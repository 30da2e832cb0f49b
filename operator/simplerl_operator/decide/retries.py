"""Which endings of an attempt are tried again, where, and when. One table; what is not in it is tried again in a new
RayCluster."""

import hashlib
from collections.abc import Mapping

from simplerl_api.failures import FailureReason
from simplerl_operator.decide.reasons import Reason

FINAL: Mapping[str, str] = {
    FailureReason.INVALID_INPUT: "the same input fails again",
    FailureReason.NON_FINITE: "the same settings from the same checkpoint diverge again",
    FailureReason.SUPERSEDED: "somebody else writes into the run's folder",
    Reason.NAME_TAKEN: "somebody else's object is in the way",
    Reason.AUTH_NOT_ENFORCED: "the cluster's KubeRay or Ray is too old",
    Reason.DRIVER_STOPPED: "somebody wanted it to stop",
    Reason.DEADLINE_EXCEEDED: "the time of the whole job is over",
    Reason.SCHEDULING_DEADLINE: "waiting again would only take longer",
}
"""Reasons after which the job fails at once, with the why."""

IN_PLACE = frozenset({
    FailureReason.LOST_RANK, FailureReason.LOST_ENGINES, FailureReason.ROLLOUT_OUT_OF_MEMORY,
    FailureReason.TRAINING_OUT_OF_MEMORY, FailureReason.WEIGHT_SYNC_FAILED, FailureReason.CHECKPOINT_FAILED,
    FailureReason.TIMED_OUT, FailureReason.INTERNAL, Reason.DRIVER_FAILED, Reason.DRAINED,
})  # fmt: skip
"""Reasons of a driver that ended by itself: where all its pods are well, the next attempt goes on in them."""

FIRST_DELAY, LONGEST_DELAY = 5.0, 300.0
INTERRUPTED_DELAY = 5.0
"""Seconds to the next attempt after one that was ended from outside."""
_JITTER = 240


def delay(failures: int) -> float:
    """Seconds from the end of the attempt that failed as number `failures` to the next; they double."""
    return float(min(FIRST_DELAY * 2 ** min(failures - 1, 30), LONGEST_DELAY))


def jitter(uid: str, attempt: int) -> float:
    """Seconds from 60 to 300 that differ from job to job, the same for the same attempt: jobs that held half of a
    cluster each must not try again at the same moment."""
    digest = hashlib.sha256(f"{uid}/{attempt}".encode()).digest()
    return 60.0 + int.from_bytes(digest[:4], "big") % (_JITTER + 1)
