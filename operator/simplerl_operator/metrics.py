"""What Prometheus reads of the operator."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from simplerl_api.status import Phase
from simplerl_operator.observe.job import Key

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Jobs(Collector):
    """Jobs by namespace and phase. Counted when asked for, so that a series goes with its last job."""

    def __init__(self) -> None:
        self.phases: dict[Key, Phase] = {}

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("simplerl_jobs", "SimpleRLJobs by phase.", labels=["namespace", "phase"])
        tally = Tally((namespace, phase.value) for (namespace, _), phase in self.phases.items())
        for labels, number in sorted(tally.items()):
            family.add_metric(labels, number)
        yield family


class Metrics:
    """All series; none bears a job's name, so that none outlives its job."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._jobs = Jobs()
        self._registry.register(self._jobs)
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
        self.engine_pods = Counter(
            "simplerl_engine_pods",
            "Pods of engines that running jobs took more of (wanted), or gave back.",
            ["change"],
            registry=self._registry,
        )
        self._api_requests = Counter(
            "simplerl_api_requests",
            "Calls of the API server, watches left out; code none: it did not answer.",
            ["verb", "resource", "code"],
            registry=self._registry,
        )

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A series whose value is asked for when it is read."""
        Gauge(name, text, registry=self._registry).set_function(value)

    def called(self, verb: str, resource: str, code: str) -> None:
        """Counts a call of the API server."""
        self._api_requests.labels(verb, resource, code).inc()

    def seen(self, key: Key, phase: Phase | None) -> None:
        """Takes note of a job's phase; None: the job is gone or has none yet."""
        if phase is None:
            self._jobs.phases.pop(key, None)
        else:
            self._jobs.phases[key] = phase

    def text(self) -> bytes:
        """All series in Prometheus' text format."""
        return generate_latest(self._registry)
