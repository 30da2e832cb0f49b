"""Rules for jobs that are over."""

from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.observe.observation import Observation


def deleted(seen: Observation, now: float) -> Decision | None:
    """A job that is being deleted, whoever set that and whatever finalizers others hold, releases its pods."""
    return _release(seen) if seen.job.deleting else None


def finished(seen: Observation, now: float) -> Decision | None:
    """A job that succeeded or failed releases its pods, after its status was written."""
    return _release(seen) if seen.job.finished else None


def _release(seen: Observation) -> Decision:
    ours = seen.cluster is not None and seen.cluster.owner_uid == seen.job.uid and not seen.cluster.deleting
    return Decision(action=Action.RELEASE if ours else Action.NOTHING)
