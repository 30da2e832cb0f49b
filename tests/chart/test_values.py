"""Every value is documented, in values.yaml and in docs/chart.md, and bounded by the schema."""

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chart import values_page
from tests.chart.test_chart import CHART, ROOT, helm

from simplerl_api import yaml12

TEXT = (CHART / "values.yaml").read_text("utf-8")
PAGE = ROOT / "docs/chart.md"
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))


def test_every_value_has_a_comment() -> None:
    assert values_page.silent(TEXT) == []
    assert [v.path for v in values_page.values(TEXT) if not v.comment.endswith((".", "8.", "64Gi."))] == []


def test_a_value_without_a_comment_would_be_found() -> None:
    text = "# One.\na: 1\nb: 2\nc:\n  # Three.\n  d: 3\n  e: {}\n"
    assert values_page.silent(text) == ["b", "c.e"]
    assert values_page.table("# A section.\na:\n  # A thing.\n  b: []\n").splitlines()[2:] == [
        "| a |  | A section. |",
        "| a.b | `[]` | A thing. |",
    ]


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text("utf-8")
    head, mark, table = text.partition("-->\n\n")
    if os.environ.get("GOLDEN") == "write":
        PAGE.write_text(head + mark + values_page.table(TEXT), "utf-8")
    assert mark
    assert table == values_page.table(TEXT)


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if schema.get("type") == "object":
        yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from objects(inner, f"{path}.{name}")
    if isinstance(inner := schema.get("items"), dict):
        yield from objects(inner, f"{path}[]")


FREE = {".global", ".affinity.nodeAffinity", ".affinity.podAffinity", ".affinity.podAntiAffinity"}
"""Helm's own, and parts of a pod that the API server checks."""


def test_the_schema_refuses_what_it_does_not_know() -> None:
    schemas = [("", SCHEMA), *((f"#{name}", s) for name, s in SCHEMA["definitions"].items())]
    open_ones = {
        start + path
        for start, schema in schemas
        for path, found in objects(schema)
        if found.get("additionalProperties", True) is True
    }
    assert open_ones == FREE


def test_the_schema_knows_every_value() -> None:
    def known(schema: dict[str, Any], values: dict[str, Any], path: str) -> Iterator[str]:
        if "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
        for name, value in values.items():
            if "properties" in schema and name not in schema["properties"]:
                yield f"{path}.{name}"
            elif isinstance(value, dict) and "properties" in schema:
                yield from known(schema["properties"][name], value, f"{path}.{name}")

    assert list(known(SCHEMA, yaml12.load(TEXT), "")) == []


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.startswith(("helm install", "helm upgrade"))]


@pytest.mark.parametrize("command", commands(), ids=range(len(commands())))
def test_the_commands_of_the_page_render(command: str, tmp_path: Path) -> None:
    written = re.search(r"<<'END'\n(.*?)^END$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert written
    (tmp_path / "values.yaml").write_text(written[1])
    words = [word for word in shlex.split(command)[2:] if word not in ("--install", "--create-namespace")]
    words = [str(ROOT / word) if word.startswith("charts/") else word for word in words]
    words = [str(tmp_path / word) if word == "values.yaml" else word for word in words]
    done = helm("template", *words)
    assert done.returncode == 0, done.stderr


def test_the_page_has_commands() -> None:
    assert len(commands()) == 3
