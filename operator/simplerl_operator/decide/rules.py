"""The ordered list of rules; the first that speaks decides."""

from collections.abc import Callable, Sequence

from simplerl_operator.decide import attempt, before_start, deadlines, ending, losses, queue, recovering, suspension
from simplerl_operator.decide.decision import Decision
from simplerl_operator.observe.observation import Observation

Rule = Callable[[Observation, float], Decision | None]

RULES: Sequence[Rule] = (
    ending.deleted,  # once it is being deleted, nothing is made and the pods go
    ending.finished,  # what has ended stays as it ended, and its pods go
    before_start.invalid,  # a spec that cannot be used is refused, and stays editable
    suspension.before_start,  # a job that is suspended before its start makes nothing
    before_start.missing,  # what it refers to must be there
    before_start.rejected,  # and the API server must take its RayCluster
    before_start.start,  # the first attempt begins: from here on the spec is fixed
    losses.driver_succeeded,  # a run that is done is done, whatever else is wanted of it
    suspension.rest,  # a suspended job rests, or goes on
    suspension.suspend,  # the run is saved and its pods go
    deadlines.active_deadline,  # the time of the whole job
    recovering.recovering,  # between two attempts
    attempt.name_taken,  # the RayCluster is ours
    queue.held_back,  # Kueue lets it run; what it takes from it is no loss
    queue.readmitted,  # also while nobody looked
    queue.admitted,  # which is written down first, since clocks count from it
    losses.driver_failed,  # a driver's last word counts before anything that happens to its pods
    losses.ray_job_over,  # or Ray's, where the driver left none
    losses.cluster_lost,  # the RayCluster is still there
    losses.head_lost,  # the head lives
    losses.worker_lost,  # the workers live, and are still the same ones
    deadlines.scheduling_deadline,  # pods find their nodes in time
    deadlines.half_placed,  # or give back those that they hold in vain
    deadlines.startup_deadline,  # nothing waits for ever before the first step
    deadlines.stalled,  # nor after it
    attempt.refused,  # what was just refused is said, and tried again
    attempt.create,  # the RayCluster is made
    attempt.wait_for_pods,  # all its pods must be ready
    attempt.open_lock,  # the head must demand the token
    attempt.wait_for_head,  # and answer
    attempt.submit,  # the driver is submitted
    losses.submission_lost,  # Ray still knows it
    attempt.follow,  # and followed
)


def decide(seen: Observation, now: float) -> Decision:
    """What to do and say after a look at a job; `now` in seconds since 1970."""
    for rule in RULES:
        decision = rule(seen, now)
        if decision is not None:
            return deadlines.in_time(seen, decision, now)
    raise AssertionError("the last rule always speaks")
