"""The time of day without jumps: deadlines of jobs are told by it, and a node whose clock is set anew must end none."""

from collections.abc import Callable

_SLEW = 0.1
"""Share by which the clock runs faster or slower until it is right."""


class SteadyClock:
    """Seconds since 1970 that never go back and never leap; a wrong clock is caught up with at 6 s a minute."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._told, self._at = wall(), monotonic()

    def __call__(self) -> float:
        at = self._monotonic()
        passed = max(0.0, at - self._at)
        off = self._wall() - (self._told + passed)
        self._told += passed + max(-_SLEW * passed, min(_SLEW * passed, off))
        self._at = at
        return self._told
