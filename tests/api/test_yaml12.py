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
        ("2026-12-01", "2026-12-01"),
        ("2026-12-01 10:00:00", "2026-12-01 10:00:00"),
        ("{2: a, true: b, null: c}", {"2": "a", "true": "b", "null": "c"}),
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


DEEP = "more than 100 objects and lists deep: write it flat, and no alias within what it stands for"
ALIASES = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcde", "bcdef", strict=True)
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected one YAML document, found 0: write a job into it"),
        ("a: 1\n---\nb: 2", "expected one YAML document, found 2: put each job in a file of its own"),
        ("a: 1\na: 2", 'not YAML: found duplicate key "a" at line 2, column 1: leave one of the two out'),
        (
            "a:\n\tb: 1",
            "not YAML: found character '\\t' that cannot start any token at line 2, column 1: indent with spaces",
        ),
        ("a: *b", "not YAML: found undefined alias 'b' at line 1, column 4"),
        ("a: \0", "not YAML: unacceptable character #x0000: special characters are not allowed at position 3"),
        ("a: 1" + "0" * 5000, "not YAML: found a number of 5001 characters at line 1, column 4"),
        (
            "a: [1",
            "not YAML: expected ',' or ']', but got '<stream end>' at line 1, column 6 "
            "(while parsing a flow sequence from line 1)",
        ),
        ("[" * 3000, "not YAML that can be read: its lists and objects are nested too deeply: write it flat"),
        ("a: &a [*a]", f"a{'[0]' * 13}… is {DEEP}"),
        ("a: &a {b: *a}", f"a{'.b' * 19}.… is {DEEP}"),
        (ALIASES, "it has more than 100,000 values, aliases followed: write fewer"),
        ("a: {b: !!set {c}}", "a.b is a set: write a text, a number, true, false, a list or an object"),
        ("a: [!!binary aGk=]", "a[0] is binary data: write a text, a number, true, false, a list or an object"),
        ("a: {[1, 2]: 3}", "a has a list as a key: write a text"),
        ('a: "\\ud800"', "a holds half a surrogate pair at character 1: remove it"),
    ],
)
def test_what_is_not_one_plain_document_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as e:
        yaml12.load(text)
    assert str(e.value) == sentence
