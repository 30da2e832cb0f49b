"""The names of all series that the operator and a driver expose."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client.parser import text_string_to_metric_families

from simplerl_trainer.progress import metrics
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter


def operator() -> set[str]:
    """Those that docs/monitoring.md lists, which are those of a live operator by a test of its own."""
    page = (Path(__file__).parents[2] / "docs/monitoring.md").read_text("utf-8")
    listed = set(re.findall(r"^\| `(simplerl_\w+)", page, re.MULTILINE))
    return listed | {f"simplerl_reconcile_seconds_{part}" for part in ("bucket", "count", "sum")}


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
