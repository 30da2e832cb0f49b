"""`--set path=value`."""

from typing import Any

import pytest

from simplerl_api import overrides

DOCUMENT = {"metadata": {"name": "a"}, "spec": {"training": {"steps": 1}, "rewards": [{"name": "r"}]}}


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("training.steps=3", ("spec", "training", "steps"), 3),
        ("spec.training.steps=3", ("spec", "training", "steps"), 3),
        ("training.actor.learningRate=5e-7", ("spec", "training", "actor", "learningRate"), 5e-7),
        ("rewards[0].weight=2.5", ("spec", "rewards", 0, "weight"), 2.5),
        ("metadata.name=b", ("metadata", "name"), "b"),
        ("data.promptTemplate={question}", ("spec", "data", "promptTemplate"), {"question": None}),
        ("data.promptTemplate='{question}='", ("spec", "data", "promptTemplate"), "{question}="),
        ("spec.evaluation=null", ("spec", "evaluation"), None),
        ("metadata.name=", ("metadata", "name"), ""),
        ("placement={colocated: {}}", ("spec", "placement"), {"colocated": {}}),
    ],
)
def test_a_setting_replaces_one_field(setting: str, path: tuple[str | int, ...], value: Any) -> None:
    node: Any = overrides.apply(DOCUMENT, [setting])
    for key in path:
        node = node[key]
    assert node == value
    assert DOCUMENT["spec"]["training"] == {"steps": 1}


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("training.steps", "--set training.steps: write path=value, for example training.steps=3"),
        ("rewards[3].weight=1", "--set rewards[3].weight=1: there is no 3 to set something in"),
        ("training.steps.x=1", "--set training.steps.x=1: there is no place for x"),
        (
            "a..b=1",
            "--set a..b=1: a..b is not a path of names joined by dots, with [n] for list items",
        ),
    ],
)
def test_a_setting_that_cannot_be_applied_is_named(setting: str, sentence: str) -> None:
    with pytest.raises(ValueError) as e:
        overrides.apply(DOCUMENT, [setting])
    assert str(e.value) == sentence
