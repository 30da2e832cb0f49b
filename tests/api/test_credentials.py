"""What a job's Secrets hold, and in which variables."""

from typing import Any

import pytest
from tests.operator import documents

from simplerl_api import credentials, validation
from simplerl_api.spec.job import Spec
from simplerl_api.spec.reference import SecretKeyRef

HUB, JUDGE = {"name": "hub", "key": "token"}, {"name": "judge", "key": "key"}


def spec(**sections: Any) -> Spec:
    return validation.parse_spec(documents.spec(**sections))


SPECS: dict[str, tuple[Spec, dict[str, dict[str, str]], bool]] = {
    "nothing": (spec(), {}, False),
    "a public model": (spec(model={"hub": {"name": "a/b"}}), {}, True),
    "a private model": (spec(model={"hub": {"name": "a/b", "tokenSecretRef": HUB}}), {"HF_TOKEN": HUB}, True),
    "private questions": (
        spec(data={"train": {"hub": {"name": "a/b", "tokenSecretRef": HUB}}}),
        {"HF_TOKEN": HUB},
        True,
    ),
    "private held-out questions": (
        spec(evaluation={"datasets": [{"name": "c", "hub": {"name": "a/b", "tokenSecretRef": HUB}}]}),
        {"HF_TOKEN": HUB},
        True,
    ),
    "a private reward model": (
        spec(
            rewards=[{"name": "a", "math": {}}, {"name": "b", "model": {"hub": {"name": "a/b", "tokenSecretRef": HUB}}}]
        ),
        {"HF_TOKEN": HUB},
        True,
    ),
    "a service's token": (
        spec(
            rewards=[
                {"name": "a", "math": {}},
                {"name": "b", "http": {"url": "http://a/", "tokenSecretRef": JUDGE}},
                {"name": "c", "http": {"url": "http://b/"}},
            ]
        ),
        {"SIMPLERL_REWARD_1_TOKEN": JUDGE},
        False,
    ),
}


@pytest.mark.parametrize(("made", "variables", "hub"), SPECS.values(), ids=SPECS)
def test_the_variables(made: Spec, variables: dict[str, dict[str, str]], hub: bool) -> None:
    expected = {name: SecretKeyRef(**ref) for name, ref in variables.items()}
    assert credentials.variables(made) == expected
    assert credentials.hub_variables(made) == {k: v for k, v in expected.items() if k == "HF_TOKEN"}
    assert credentials.uses_hub(made) is hub


def test_values_that_must_not_be_logged_are_those_of_the_environment_even_without_kubernetes() -> None:
    made = spec(rewards=[{"name": "a", "http": {"url": "http://a/"}}])
    environment = {"HF_TOKEN": "hf_x", "SIMPLERL_REWARD_0_TOKEN": "s", "SIMPLERL_REWARD_1_TOKEN": "other", "HOME": "/"}
    assert credentials.values(made, environment) == ["hf_x", "s"]
    assert credentials.values(made, {"HF_TOKEN": ""}) == []
