"""The trackers of a run: each works in a thread of its own behind a bounded queue, so that none can hold up the run."""

import asyncio
import math
import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from simplerl_api.run import Run
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.tensorboard import TensorBoard
from simplerl_trainer.progress.wandb_run import WandbRun

OPEN_SECONDS = 30.0
"""How long the run waits for a tracker before its first step; a slower one joins when it is ready."""
CLOSE_SECONDS = 30.0
"""How long the end of the run waits for the last figures to be sent."""
LONGEST_QUEUE = 1000
"""Lines of figures that wait for a slow tracker; newer ones are dropped."""

Line = tuple[int, Mapping[str, float]]


class Tracker(Protocol):
    """Where figures go. All methods but `kill` are called in one thread, and may take as long as they like."""

    name: str
    """Its name in the spec."""
    id: str | None
    """Under which a later attempt goes on; None where it needs none."""

    def open(self) -> None:
        """Makes it ready. Raises an exception whose text says what to do."""

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Figures of one step."""

    def close(self, failed: bool) -> None:
        """Sends what is left; `failed`: the run did not end well."""

    def kill(self) -> None:
        """Ends, from another thread, whatever still lives; what was not sent is lost."""


class Trackers:
    """All trackers of a run. A failure is one warning in the log, and the end of that tracker alone."""

    def __init__(self, trackers: Sequence[Tracker], log: Log, longest_queue: int = LONGEST_QUEUE) -> None:
        self._lanes = [_Lane(tracker, longest_queue) for tracker in trackers]
        self._log = log

    @property
    def ids(self) -> dict[str, str]:
        """What a later attempt goes on with, by the tracker's name; JSON."""
        return {lane.tracker.name: lane.tracker.id for lane in self._lanes if lane.tracker.id is not None}

    async def open(self, seconds: float = OPEN_SECONDS) -> None:
        """Probes all trackers together, for at most `seconds` seconds."""
        for lane in self._lanes:
            lane.start()
        await asyncio.gather(*(asyncio.to_thread(lane.settled.wait, seconds) for lane in self._lanes))
        for lane in self._lanes:
            if not lane.settled.is_set():
                self._log.warning("tracker is slow", tracker=lane.tracker.name, why=f"not ready after {seconds:g} s")
        self._name_troubles()

    def step(self, step: int, figures: Mapping[str, float], seconds: Mapping[str, float]) -> None:
        """A step's metrics, and its seconds by part; those that are not finite are left out."""
        self._add(step, {**figures, **{f"seconds/{part}": value for part, value in seconds.items()}})

    def evaluation(self, step: int, dataset: str, accuracy: float) -> None:
        """An evaluation's accuracy."""
        self._add(step, {f"evaluation/{dataset}": accuracy})

    async def close(self, failed: bool, seconds: float = CLOSE_SECONDS) -> None:
        """Lets all trackers send what they have, for at most `seconds` seconds."""
        for lane in self._lanes:
            lane.finish(failed)
        await asyncio.gather(*(asyncio.to_thread(lane.ended.wait, seconds) for lane in self._lanes))
        for lane in self._lanes:
            if lane.trouble is None and not lane.ended.is_set():
                lane.trouble = f"its last figures were not sent within {seconds:g} s"
            lane.tracker.kill()
        self._name_troubles()

    def _add(self, step: int, figures: Mapping[str, float]) -> None:
        finite = {name: value for name, value in figures.items() if math.isfinite(value)}
        for lane in self._lanes:
            lane.put((step, finite))
        self._name_troubles()

    def _name_troubles(self) -> None:
        for lane in self._lanes:
            if lane.trouble is not None and not lane.named:
                lane.named = True
                self._log.warning("tracker fails", tracker=lane.tracker.name, why=lane.trouble)


def make_trackers(run: Run, steps_done: int, ids: Mapping[str, str], log: Log) -> Trackers:
    """The trackers that spec.tracking names. `ids`: those of the attempt whose checkpoint is resumed after `steps_done`
    steps."""
    tracking, chosen = run.spec.tracking, list[Tracker]()
    if tracking.tensorboard:
        chosen.append(TensorBoard(run, steps_done))
    if tracking.wandb is not None:
        chosen.append(WandbRun(run, tracking.wandb, ids.get(WandbRun.name)))
    return Trackers(chosen, log)


class _Lane:
    """One tracker's thread and queue. The thread is a daemon: the process ends without it."""

    def __init__(self, tracker: Tracker, longest_queue: int) -> None:
        self.tracker = tracker
        self.settled = threading.Event()
        """It is ready, or has failed."""
        self.ended = threading.Event()
        """Its thread has nothing more to do."""
        self.trouble: str | None = None
        self.named = False
        self._queue: queue.Queue[Line] = queue.Queue(longest_queue)
        self._finish = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._work, name=f"tracker {tracker.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, line: Line) -> None:
        if self.ended.is_set():
            return
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self.trouble = (
                self.trouble
                or f"{self._queue.maxsize} lines wait for it: the figures of step {line[0]} "
                "and later ones are dropped until it is quicker"
            )

    def finish(self, failed: bool) -> None:
        self._failed = failed
        self._finish.set()
        if not self._thread.is_alive():
            self.ended.set()

    def _work(self) -> None:
        try:
            self.tracker.open()
            self.settled.set()
            while (line := self._next()) is not None:
                self.tracker.log(*line)
            self.tracker.close(self._failed)
        except Exception as e:  # noqa: BLE001 (whatever a tracker raises is its own end only, named in the log)
            self.trouble = f"{type(e).__name__}: {e}"
        finally:
            self.settled.set()
            self.ended.set()

    def _next(self) -> Line | None:
        """The next line; None once the run is over and all were taken."""
        while True:
            try:
                return self._queue.get(timeout=0.2)
            except queue.Empty:
                if self._finish.is_set():
                    return None
