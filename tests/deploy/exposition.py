"""The names of all series that the operator and a driver expose, by what they answer at /metrics."""

from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client.parser import text_string_to_metric_families

from simplerl_operator.metrics import Metrics
from simplerl_trainer.progress import metrics
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter


def operator() -> set[str]:
    return _names(Metrics().text())


def driver() -> set[str]:
    with TemporaryDirectory() as folder:
        reporter = Reporter("tiny-1a2b3-1", 60, Log(Path(folder) / "driver.log", console=False))
        for step in (1, 2):
            figures = {"reward": 0.5, "samples_per_second": 250.0, "tokens_per_second": 1000.0}
            reporter.step(step, figures, {"rollout": 1.5}, 2.0)
        reporter.evaluation("held-out", 0, 0.31)
        return _names(metrics.render(reporter))


def _names(text: bytes) -> set[str]:
    return {s.name for family in text_string_to_metric_families(text.decode()) for s in family.samples}
