"""Which failures count against spec.recovery.backoffLimit: those since the run last got further, which it does with a
complete checkpoint of a later step than it had at its last failure."""

from typing import Any

from simplerl_operator.observe.observation import Observation


def before(seen: Observation) -> int:
    """Failures that count already."""
    return 0 if _got_further(seen) else seen.job.status.failures


def forgiven(seen: Observation) -> dict[str, Any]:
    """What of the status changes once the run got further."""
    return {"failures": 0, "failure_step": None} if _got_further(seen) else {}


def charged(seen: Observation) -> dict[str, Any]:
    """What of the status changes with one failure more."""
    return {"failures": before(seen) + 1, "failure_step": _saved(seen)}


def _got_further(seen: Observation) -> bool:
    return seen.job.status.failures > 0 and _saved(seen) > (seen.job.status.failure_step or 0)


def _saved(seen: Observation) -> int:
    """The latest step of which a checkpoint was ever complete; one of an earlier step does not take it back."""
    said, status = seen.last_document, seen.job.status
    steps = [c.step for c in (status.checkpoint, said.checkpoint if said is not None else None) if c is not None]
    return max([status.failure_step or 0, *steps])
