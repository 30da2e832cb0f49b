"""The benchmarks' own parts, without a GPU."""

import argparse
from pathlib import Path

import pytest
from benchmarks import eval as evaluation
from benchmarks import step
from benchmarks.operator import fleet, measure

from simplerl_api import validation


@pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
def test_the_job_is_valid_and_has_the_size_that_is_said(algorithm: str, tmp_path: Path) -> None:
    document = step.job(algorithm, 4, tmp_path / "model", tmp_path / "questions.jsonl")
    assert validation.faults(document) == []
    spec = validation.parse(document).spec
    assert spec.rollout.samples_per_step == 1024
    assert spec.algorithm.kl.coefficient == (0.01 if algorithm == "ppo" else 0)


def test_the_table_leaves_the_first_step_out_of_the_mean() -> None:
    rows = [
        {
            "step": n,
            "samples_per_second": rate,
            "tokens_per_second": 10 * rate,
            "seconds": {"rollout": s, "total": 2 * s},
        }
        for n, rate, s in ((1, 1.0, 9.0), (2, 10.0, 2.0), (3, 20.0, 4.0))
    ]
    assert step.table(rows).splitlines() == [
        "| step | rollout | total | samples/s | tokens/s |",
        "| --- | --- | --- | --- | --- |",
        "| 1 | 9.00 | 18.00 | 1.0 | 10 |",
        "| 2 | 2.00 | 4.00 | 10.0 | 100 |",
        "| 3 | 4.00 | 8.00 | 20.0 | 200 |",
        "| mean of 2 | 3.00 | 6.00 | 15.0 | 150 |",
    ]


def test_a_run_that_did_no_step_says_so(tmp_path: Path) -> None:
    assert step.table(step.rows(tmp_path)) == "no step was done"


def test_quantiles_and_series_are_read_right() -> None:
    assert [measure.quantile([1.0, 2.0, 3.0, 4.0], share) for share in (0.5, 0.99, 1.0)] == [2.0, 4.0, 4.0]
    assert measure.series('# HELP a\na{phase="x y"} 3.0\nb 1e3\n') == {'a{phase="x y"}': 3.0, "b": 1000.0}


def test_the_bare_cluster_of_the_fleet_has_the_shape_of_the_jobs() -> None:
    assert validation.faults(fleet.job("a", "b")) == []
    bare = fleet.bare("a", "b")
    group = bare["spec"]["workerGroupSpecs"][0]
    assert (group["replicas"], group["template"]["spec"]["containers"][0]["image"]) == (1, fleet.IMAGE)
    assert fleet.ray_job("a", "b")["spec"]["rayClusterSpec"] == bare["spec"]


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        pytest.param("v0", {}, "--template qwen-boxed --temperature 0 --max-tokens 3000", id="as v0"),
        pytest.param("own template", {}, "--temperature 0 --max-tokens 2048", id="the model's own template"),
        pytest.param(
            "v0",
            {"max_tokens": 256, "limit": 200},
            "--template qwen-boxed --temperature 0 --max-tokens 256 --limit 200",
            id="shorter",
        ),
    ],
)
def test_an_evaluation_is_asked_for_as_it_is_said(name: str, more: dict[str, int], expected: str) -> None:
    usual = {"max_tokens": None, "limit": None, "engines": None, "batch_size": None}
    given = argparse.Namespace(model=Path("m"), data="gsm8k", data_folder=Path("d"), **usual | more)
    words = " ".join(evaluation.options(given, name, Path("o")))
    assert words == f"--model-path m --data gsm8k --data-folder d --output o {expected}"
