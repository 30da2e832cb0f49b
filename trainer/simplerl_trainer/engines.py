"""The plan's engines: which of them are wanted, and those that are started again.

Starting takes a minute or more, so it goes on beside the steps; an engine that is ready joins at the next sync.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from ray.exceptions import RayError

from simplerl_api.failures import TrainerFailure
from simplerl_api.plan import Plan
from simplerl_trainer import answers
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log

MOST_TRIES = 5
"""Starts of one engine in a row; an engine that serves from one sync to the next has used none."""
PAUSE_SECONDS = 2.0
"""Between two tries while no engine is left."""

Start = Callable[[int], Awaitable[Any]]
"""Starts an engine in its slot; returns its actor, ready but for the newest weights."""


class Engines:
    """Brings engines back that are wanted and do not live."""

    def __init__(
        self,
        start: Start,
        order: Sequence[int],
        control: Control,
        log: Log,
        *,
        replaces: bool,
        with_nodes: Callable[[], Collection[int]] | None = None,
    ) -> None:
        """`order`: the plan's engines; where `control` asks for fewer, the last go first. `replaces`: whether lost
        engines are started again. `with_nodes`: those whose nodes are there, where nodes come and go; they are wanted
        first."""
        self._start, self._order, self._control, self._log, self._replaces = start, order, control, log, replaces
        self._starting: dict[int, asyncio.Task[Any]] = {}
        self._with_nodes = with_nodes
        self._tries: dict[int, int] = {}
        self.why = ""
        """Why an engine could not be started, if any."""

    @property
    def desired(self) -> int:
        """How many engines are wanted."""
        return self._control.engines

    @property
    def wanted(self) -> Collection[int]:
        """The engines that are wanted."""
        if self._with_nodes is None:
            return self._order[: self._control.engines]
        there = self._with_nodes()
        return sorted(self._order, key=lambda engine: engine not in there)[: self._control.engines]

    @property
    def hopeful(self) -> bool:
        """Whether an engine may yet come back."""
        return self._replaces and any(self._tries.get(e, 0) < MOST_TRIES or e in self._starting for e in self.wanted)

    def begin(self, living: Collection[int]) -> None:
        """Begins to start what is wanted and does not live; returns at once."""
        there = None if self._with_nodes is None else self._with_nodes()
        for engine in self.wanted if self._replaces else ():
            if engine in living or engine in self._starting:
                continue
            if there is not None and engine not in there:
                self._tries.pop(engine, None)  # the next node is another one
            elif self._tries.get(engine, 0) < MOST_TRIES:
                self._tries[engine] = self._tries.get(engine, 0) + 1
                self._starting[engine] = asyncio.ensure_future(self._start(engine))
                self._log.info("starting an engine", engine=engine, tries=self._tries[engine], most=MOST_TRIES)

    def abandon_all_but(self, wanted: Collection[int]) -> None:
        """Ends the starts of engines that are not wanted any more."""
        for engine in self._starting.keys() - set(wanted):
            self._starting.pop(engine).cancel()

    def want(self, engines: int) -> bool:
        """Another number is wanted, unless somebody said which; whether it is."""
        if not self._control.asked:
            self._control.engines = engines
        return not self._control.asked

    def serves(self, engines: Collection[int]) -> None:
        """These engines have served from one sync to the next."""
        for engine in engines:
            self._tries.pop(engine, None)

    def ready(self) -> Mapping[int, Any]:
        """The engines that have started since the last call; those that could not are named in the log."""
        found: dict[int, Any] = {}
        for engine in [e for e, task in self._starting.items() if task.done()]:
            try:
                found[engine] = self._starting.pop(engine).result()
            except (TrainerFailure, RayError, RuntimeError) as error:
                self.why = f"engine {engine} did not start again ({answers.one_line(error)})"
                self._log.warning("an engine did not start", engine=engine, why=answers.one_line(error))
            else:
                self._log.info("an engine is ready to join", engine=engine)
        return found

    async def wait(self, seconds: float) -> Mapping[int, Any]:
        """The engines that come back first, where none lives; none where all tries are spent or time is out."""
        loop = asyncio.get_running_loop()
        bound = loop.time() + seconds
        while (left := bound - loop.time()) > 0 and self.hopeful:
            self.begin(())
            if self._starting:
                await asyncio.wait(self._starting.values(), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if found := self.ready():
                return found
            await asyncio.sleep(min(PAUSE_SECONDS, max(0.0, bound - loop.time())))
        return {}

    async def close(self) -> None:
        """Ends the starts that are under way."""
        for task in self._starting.values():
            task.cancel()
        await asyncio.gather(*self._starting.values(), return_exceptions=True)


def in_order(plan: Plan) -> Sequence[int]:
    """All engines, the last to go first: node by node where they go with their nodes, else evenly."""
    return spread(plan) if plan.min_engines is None else sorted(plan.engine_slots())


def spread(plan: Plan) -> Sequence[int]:
    """All engines, the first of each slot before the second of any: so many of them as are wanted use all slots."""
    places = {e: own[0].engines.index(e) for e, own in plan.engine_slots().items()}
    return sorted(places, key=lambda e: (places[e], e))
