"""`--set path=value`."""

from typing import Any

import pytest

from simplerl_api import overrides, yaml12

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
        ("cluster.env[0].name=A", ("spec", "cluster", "env"), [{"name": "A"}]),
        ("rewards[1].name=s", ("spec", "rewards", 1, "name"), "s"),
        ("metadata.labels.day=2026-12-01", ("metadata", "labels", "day"), "2026-12-01"),
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
        ("rewards[3].weight=1", "--set rewards[3].weight=1: spec.rewards ends before [3]: use at most [1]"),
        (
            "training.steps.x=1",
            "--set training.steps.x=1: spec.training.steps is a number, which has no x: end the path there",
        ),
        (
            "rewards.weight=1",
            "--set rewards.weight=1: spec.rewards is a list, which has no weight: name one of its items, from [0] on",
        ),
        (
            "training[0]=1",
            "--set training[0]=1: spec.training is an object, which has no [0]: name one of its fields",
        ),
        (
            "training.steps=[1",
            "--set training.steps=[1: its value is not YAML: expected ',' or ']', but got '<stream end>' at line 1, "
            "column 3 (while parsing a flow sequence from line 1)",
        ),
        ("training.steps=3\n---\n4", "--set training.steps=3\n---\n4: its value is 2 YAML documents: give one"),
        (
            "training.steps=!!set {a}",
            "--set training.steps=!!set {a}: its value is the document is a set: write a text, a number, true, false, "
            "a list or an object",
        ),
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


def test_a_setting_leaves_alone_what_was_the_same_by_an_alias() -> None:
    document = yaml12.load("spec: {training: {actor: &both {learningRate: 1}, critic: *both}}")
    changed = overrides.apply(document, ["training.actor.learningRate=2"])
    assert changed["spec"]["training"] == {"actor": {"learningRate": 2}, "critic": {"learningRate": 1}}


@pytest.mark.parametrize("document", [[1], "text", None])
def test_what_is_no_object_is_left_for_its_own_sentence(document: Any) -> None:
    assert overrides.apply(document, ["training.steps=3"]) == document
