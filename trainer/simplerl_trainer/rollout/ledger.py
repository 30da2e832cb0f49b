"""Who draws what: the pool's bookkeeping, without a clock or a call.

Requests get numbers of the pool's own, which are never used again: what an engine still finishes of an abandoned
rollout is then known to nobody, and dropped.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from simplerl_trainer.rollout.protocol import Finished, Request


class Ledger:
    """Requests that wait, and those that are out, by engine."""

    def __init__(self, requests: Iterable[Request], engines: Collection[int], first_number: int) -> None:
        self._ids: dict[int, int] = {}
        self._waiting: deque[Request] = deque()
        self._out: dict[int, dict[int, Request]] = {e: {} for e in engines}
        for number, request in enumerate(requests, start=first_number):
            self._ids[number] = request.id
            self._waiting.append(replace(request, id=number))
        self.next_number = first_number + len(self._waiting)

    @property
    def engines(self) -> Sequence[int]:
        """Engines that are not lost."""
        return list(self._out)

    @property
    def done(self) -> bool:
        """Whether every request has finished."""
        return not self._waiting and not any(self._out.values())

    def out(self, engine: int) -> Sequence[int]:
        """Numbers of the requests that an engine draws; none where it is lost."""
        return list(self._out.get(engine, ()))

    def dispatch(self, limit: int) -> Mapping[int, Sequence[Request]]:
        """Gives waiting requests to the least loaded engines, at most `limit` outstanding each; those given to."""
        counts = shares({e: len(out) for e, out in self._out.items()}, limit, len(self._waiting))
        given = {e: [self._waiting.popleft() for _ in range(n)] for e, n in counts.items() if n}
        for engine, requests in given.items():
            self._out[engine].update((r.id, r) for r in requests)
        return given

    def finish(self, engine: int, finished: Iterable[Finished]) -> Sequence[Finished]:
        """What of an engine's answer is new, under the requests' own ids."""
        out = self._out.get(engine, {})
        return [replace(f, id=self._ids[f.id]) for f in finished if out.pop(f.id, None) is not None]

    def lose(self, engine: int) -> int:
        """Takes an engine out; its work waits again, before all other. Returns how much that is."""
        back = self._out.pop(engine, {})
        self._waiting.extendleft(reversed(back.values()))
        return len(back)


def shares(loads: Mapping[int, int], limit: int, waiting: int) -> Mapping[int, int]:
    """How many of `waiting` requests each engine gets so that loads become as even as they can, none above `limit`."""
    given = dict.fromkeys(loads, 0)
    while waiting:
        room = [e for e in loads if loads[e] + given[e] < limit]
        if not room:
            break
        level = min(loads[e] + given[e] for e in room)
        lowest = [e for e in room if loads[e] + given[e] == level]
        above = min((loads[e] + given[e] for e in room if loads[e] + given[e] > level), default=limit)
        step = min(above - level, max(1, waiting // len(lowest)))
        for e in lowest:
            n = min(step, waiting)
            given[e] += n
            waiting -= n
    return given
