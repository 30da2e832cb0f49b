"""How many engines keep the ranks busy, where engines come and go with their pods.

With OneStep a batch is drawn while the one before trains. The time that a batch takes falls with the number of engines
about as 1/n, so that

    engines x seconds of drawing / seconds of training

of them draw a batch in just the time in which another one trains: with fewer the ranks wait, with more the engines.
Without overlap the ranks wait for every batch, and each engine that comes makes that shorter: all are wanted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simplerl_api.run import Run
from simplerl_api.spec.rollout import Overlap
from simplerl_trainer.clock import Clock
from simplerl_trainer.fleet import Fleet
from simplerl_trainer.progress.log import Log

STEPS = 3
"""Steps in a row that must agree, since pods take minutes to come."""
MARGIN = 1.1
"""Engines are wanted for so much more than a batch: responses are now longer, now shorter."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A step: so many engines drew a batch in so many seconds, while the ranks trained for so many."""

    engines: int
    drawing: float
    training: float

    @property
    def balanced(self) -> int:
        """Engines that draw a batch while another one trains."""
        return math.ceil(self.engines * self.drawing / self.training * MARGIN)


def wanted(paces: Sequence[Pace], now: int, least: int, most: int, each: int) -> int:
    """Engines that are wanted after these steps, where `now` are: whole nodes of `each`, from `least` to `most`.

    Another number than `now` only where the newest STEPS steps all want more, or all could do with a node less; then
    the one that is nearest to it.
    """
    needs = [pace.balanced for pace in paces[-STEPS:]]
    if len(needs) < STEPS:
        return now
    if min(needs) > now:
        nearest = min(needs)
    elif max(needs) <= now - each:
        nearest = max(needs)
    else:
        return now
    return min(max(math.ceil(nearest / each) * each, least), most)


class Sizing:
    """Follows a run's steps, and asks for as many engines as they want."""

    def __init__(self, run: Run, log: Log) -> None:
        self._plan, self._log = run.plan, log
        self._overlapped = run.spec.rollout.overlap is Overlap.ONE_STEP
        self._paces: list[Pace] = []
        self._drawing: float | None = None

    def drew(self, seconds: float) -> None:
        """A batch was drawn."""
        self._drawing = seconds

    def trained(self, fleet: Fleet, clock: Clock) -> None:
        """A step was trained while the fleet's engines drew; what is wanted now acts at the sync that follows."""
        training, least = clock.seconds.get("annotate", 0.0) + clock.seconds.get("update", 0.0), self._plan.min_engines
        if least is None or not self._overlapped or not training or self._drawing is None:
            return
        self._paces = [*self._paces, Pace(len(fleet.pool.engines), self._drawing, training)][-STEPS:]
        self._drawing = None
        before = fleet.engines.desired
        each = self._plan.engines // (self._plan.nodes - self._plan.training_nodes)
        after = wanted(self._paces, before, least, self._plan.engines, each)
        if after != before and fleet.engines.want(after):
            drawing = round(self._paces[-1].drawing, 3)
            self._log.info("other engines are wanted", before=before, now=after, drawing=drawing, training=training)
