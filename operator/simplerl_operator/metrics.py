"""What Prometheus reads of the operator."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from simplerl_api.status import Phase
from simplerl_operator.observe.job import Key

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """All series; none bears a job's name, so that none outlives its job."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._phases: dict[Key, Phase] = {}
        self._jobs = Gauge("simplerl_jobs", "SimpleRLJobs by phase.", ["phase"], registry=self._registry)
        for phase in Phase:
            self._jobs.labels(phase.value).set_function(self._counter(phase))
        self.reconcile_seconds = Histogram(
            "simplerl_reconcile_seconds",
            "Seconds of one look at a job and what followed from it.",
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=self._registry,
        )
        self.reconcile_errors = Counter(
            "simplerl_reconcile_errors", "Looks at a job that ended with an error.", registry=self._registry
        )
        self.status_writes = Counter("simplerl_status_writes", "Writes of a job's status.", registry=self._registry)
        self._depth = Gauge("simplerl_queue_depth", "Jobs that wait for a worker.", registry=self._registry)

    def watch_queue(self, depth: Callable[[], int]) -> None:
        self._depth.set_function(depth)

    def seen(self, key: Key, phase: Phase | None) -> None:
        """Takes note of a job's phase; None: the job is gone or has none yet."""
        if phase is None:
            self._phases.pop(key, None)
        else:
            self._phases[key] = phase

    def text(self) -> bytes:
        """All series in Prometheus' text format."""
        return generate_latest(self._registry)

    def _counter(self, phase: Phase) -> Callable[[], float]:
        return lambda: float(sum(p is phase for p in self._phases.values()))
