"""What is asked of a run while it trains, by `PUT /control`."""

import asyncio
from typing import Any

from simplerl_api import validation
from simplerl_api.plan import PlacementKind, Plan
from simplerl_api.progress import ControlRequest


class Refused(ValueError):
    """A request that this run cannot follow; says why in one sentence."""


class Control:
    """The newest wishes; a new attempt begins with the plan's."""

    def __init__(self, plan: Plan, engines: int | None = None) -> None:
        """`engines`: how many the spec wants of engines that come and go, where it says so."""
        self._plan = plan
        self.engines = engines or plan.engines
        """How many engines are wanted; looked at with every weight sync."""
        self.asked = engines is not None
        """Whether somebody said so; else the driver may find another number."""
        self.drain = asyncio.Event()
        """Set once the run is asked to drain."""

    def apply(self, document: Any) -> ControlRequest:
        """Takes up a request's document.

        Raises InvalidJob where it is no request, Refused where the run cannot follow it; nothing is taken up then.
        """
        request = validation.parse_control(document)
        if request.engines is not None:
            self._check_engines(request.engines)
            self.engines, self.asked = request.engines, True
        if request.drain:
            self.drain.set()
        return request

    def _check_engines(self, engines: int) -> None:
        least = self._plan.min_engines or 1
        if self._plan.placement is PlacementKind.COLOCATED:
            raise Refused(
                "engines cannot change while the job runs, since its placement is colocated and each engine shares its "
                "GPU with a training rank: use placement.disaggregated"
            )
        if engines > self._plan.engines:
            raise Refused(
                f"engines is {engines}, more than the {self._plan.engines} of the plan: use {least} to "
                f"{self._plan.engines}"
            )
        if engines < least:
            raise Refused(
                f"engines is {engines}, less than rollout.elastic.minEngines: use {least} to {self._plan.engines}"
            )
