"""What the pages in docs/ say is so: their jobs are valid, their fields and files exist."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from simplerl_api import reference, structural, validation, yaml12
from simplerl_api.spec.job import Spec
from simplerl_trainer.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BASE = {
    "apiVersion": "simplerl.io/v1alpha1",
    "kind": "SimpleRLJob",
    "metadata": {"name": "page"},
    "spec": {
        "model": {"path": "/models/m"},
        "data": {"train": {"file": "/data/train.jsonl"}},
        "rewards": [{"name": "math", "math": {}}],
        "training": {"steps": 10},
        "cluster": {"gpus": 8},
    },
}
"""A job that the fragments in the pages are parts of: each replaces the sections that it holds."""
SCHEMA = structural.schema(Spec, defaults=False)

BLOCKS = [
    pytest.param(text, id=f"{page.name} block {i + 1}")
    for page in PAGES
    for i, text in enumerate(re.findall(r"^```yaml\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE))
]


def job_of(block: Any) -> dict[str, Any]:
    """The job that a block is or is a part of: a whole one, a spec, or some of a spec's sections."""
    if block.get("kind") == "SimpleRLJob":
        return dict(block)
    job = copy.deepcopy(BASE)
    sections = block["spec"] if set(block) == {"spec"} else block
    job["spec"] |= sections  # type: ignore[operator]
    return job


@pytest.mark.parametrize("text", BLOCKS)
def test_a_job_or_a_part_of_one_is_valid(text: str) -> None:
    for block in yaml12.load_all(text):
        if "kind" in block and block["kind"] != "SimpleRLJob":
            assert {"apiVersion", "metadata"} <= set(block), "a whole object of Kubernetes"
        else:
            assert validation.faults(job_of(block)) == []


def exists(path: str) -> bool:
    """Whether a dotted path such as `rewards[].math` leads to a field of the spec."""
    node = SCHEMA
    for name in path.replace("[]", "").split("."):
        node = node.get("items", node)
        if node.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in node:
            return True
        if name not in node.get("properties", {}):
            return False
        node = node["properties"][name]
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_field_that_a_page_names_exists(page: Path) -> None:
    code = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.M))
    sections = "|".join(SCHEMA["properties"])
    named = {m for text in code for m in re.findall(rf"^(?:spec\.)?((?:{sections})(?:\[\])?(?:\.\w+(?:\[\])?)+)", text)}
    assert [path for path in sorted(named) if not exists(path)] == []


FUNCTIONS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/rewards.md").read_text("utf-8"), re.DOTALL | re.M)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_the_reward_functions_of_the_page_work(tmp_path: Path, text: str) -> None:
    (tmp_path / "score.py").write_text(text)
    case = {"response": "It is \\boxed{7}.", "answer": "7", "question": "What is 3 + 4?", "level": 2}
    (tmp_path / "responses.jsonl").write_text(json.dumps(case))
    job = tmp_path / "job.yaml"
    rewards = [{"name": "own", "python": {"file": str(tmp_path / "score.py")}}]
    job.write_text(yaml12.dump(job_of({"rewards": rewards})))
    words = ["grade", str(tmp_path / "responses.jsonl"), "--rewards", str(job), "-o", "json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def test_the_page_of_rewards_has_functions() -> None:
    assert len(FUNCTIONS) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_and_command_of_a_page_works(page: Path) -> None:
    text = page.read_text("utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("http")]
    assert [link for link in links if link and not (page.parent / link).exists()] == []
    for command in set(re.findall(r"(?:^|`)simplerl ([a-z]+)", text, re.MULTILINE)):
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0, command


def test_the_page_of_fields_is_made_from_the_models() -> None:
    assert (ROOT / "docs/reference/fields.md").read_text("utf-8") == reference.page()


@pytest.mark.parametrize(
    "row",
    [
        "| **steps** | integer |  | ≥ 0, ≤ 10,000,000 | Steps of the job, each one rollout and all its optimizer "
        "steps. 0: the job only evaluates. |",
        "| precision | `BF16` or `FP32` |  |  | Type of weights and activations. Absent: BF16 on GPUs, FP32 where "
        "cluster.cpuOnly. |",
        "| trainBatchSize | integer | `128` | ≥ 1, ≤ 10,000,000 | Samples of one optimizer step; divides "
        "promptsPerStep x samplesPerPrompt. |",
    ],
)
def test_a_field_is_a_row_with_its_type_default_and_limits(row: str) -> None:
    assert row in reference.page().splitlines()


def test_every_field_of_the_spec_has_a_row_with_a_sentence() -> None:
    rows = [line for line in reference.page().splitlines() if line.startswith("| ") and "| --- |" not in line]
    assert [row for row in rows if row.endswith("|  |") and not row.startswith("| field")] == []
    assert len(rows) > 100
