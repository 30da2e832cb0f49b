"""Numbers and words of YAML 1.2 survive every road."""

import json
from pathlib import Path
from typing import Any

import pytest

from simplerl_api import overrides, validation, yaml12

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-7", 5e-7),
        ("5.0e-7", 5e-7),
        ("1e6", 1e6),
        ("1.0E+6", 1e6),
        ("-3", -3),
        ("0.1", 0.1),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("None", "None"),
        ("null", None),
        ("true", True),
        ("'5e-7'", "5e-7"),
        ("012", 12),
    ],
)
def test_a_scalar_is_read_as_yaml_1_2(text: str, value: Any) -> None:
    read = yaml12.load(f"v: {text}")["v"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("rate", [5e-7, 9e-6, 1e-4, 3e-05, 1.0])
def test_a_learning_rate_survives_file_json_and_dump(rate: float) -> None:
    document = overrides.apply(yaml12.load_file(ROOT / "examples/tiny.yaml"), [f"training.actor.learningRate={rate}"])
    spec = validation.parse(yaml12.load(yaml12.dump(document))).spec
    assert spec.training.actor.learning_rate == rate
    again = validation.parse_spec(json.loads(json.dumps(spec.document())))
    assert again == spec


@pytest.mark.parametrize(
    ("text", "part"),
    [("a: 1\na: 2", "duplicate key"), ("a: [1", "not YAML"), ("a: 1\n---\nb: 2", "one YAML document, found 2")],
)
def test_what_is_not_one_document_is_refused(text: str, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        yaml12.load(text)
