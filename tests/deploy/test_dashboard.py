"""The Grafana dashboard asks for series that there are."""

import json
import re
from typing import Any

from tests.deploy import exposition
from tests.deploy.test_files import DEPLOY, ROOT

DASHBOARD = json.loads((DEPLOY / "grafana/simplerl.json").read_text("utf-8"))
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}


def test_every_series_is_exposed() -> None:
    asked = [*QUERIES, *(v["query"]["query"] for v in VARIABLES.values() if v["type"] == "query")]
    named = {name for query in asked for name in re.findall(r"simplerl_\w+", query)}
    assert named - exposition.operator() - exposition.driver() == set()
    assert exposition.driver() - named <= {"simplerl_run_info"}, "a figure of the driver that no panel shows"


def test_every_training_metric_is_a_documented_one() -> None:
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    documented = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}
    shown = {name for query in QUERIES for name in re.findall(r'name="(\w+)"', query)}
    assert len(shown) >= 10
    assert shown - documented == set()


def test_every_variable_is_defined() -> None:
    assert {name for query in QUERIES for name in re.findall(r"\$(\w+)", query)} <= set(VARIABLES)


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at: dict[str, Any] = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
