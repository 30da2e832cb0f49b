"""The cluster's time of day, by the dates of the API server's answers: what it and the rest of the control plane write
bears their time, and a node's clock may be minutes off."""

from collections.abc import Callable

from simplerl_operator import clock


class ServerClock:
    """How far the API server's clock is ahead of another one."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._date = ""
        self._told: tuple[float, float] | None = None  # its time, and ours that never leaps

    def hear(self, date: str) -> None:
        """Takes note of an answer's date, which is in whole seconds: the first of each second is the best."""
        if date == self._date:
            return
        self._date = date
        time = clock.http_date(date)
        if time is not None:  # a proxy's answer, perhaps: what was told before goes on
            self._told = time, self._monotonic()

    def ahead(self, now: float) -> float:
        """Seconds by which it is ahead of a clock that shows `now`; 0 where it has told nothing yet."""
        if self._told is None:
            return 0.0
        time, at = self._told
        return time + self._monotonic() - at - now
