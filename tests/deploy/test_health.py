"""kstatus, Argo CD and Flux read a job of every phase right, by their own code."""

from typing import Any

import pytest
from tests.deploy import health
from tests.operator import documents
from tests.operator.observations import NOW, UID, progress, seen, started, submitted

from simplerl_api import yaml12
from simplerl_api.status import Phase
from simplerl_operator.decide.decision import Decision
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe.observation import Inputs, Observation

HEALTH = {
    "Pending": ("InProgress", "Progressing", "InProgress"),
    "Queued": ("InProgress", "Progressing", "InProgress"),
    "Provisioning": ("InProgress", "Progressing", "InProgress"),
    "Starting": ("InProgress", "Progressing", "InProgress"),
    "Training": ("Current", "Healthy", "Current"),
    "Suspending": ("InProgress", "Progressing", "InProgress"),
    "Suspended": ("Current", "Suspended", "Current"),
    "Recovering": ("InProgress", "Progressing", "InProgress"),
    "Succeeded": ("Current", "Healthy", "Current"),
    "Failed": ("Failed", "Degraded", "Failed"),
}
"""What kstatus, Argo CD and Flux are to say of a phase."""


def document(observation: Observation, decision: Decision | None = None) -> dict[str, Any]:
    """The object as the API server would hold it after a decision."""
    decision = decision or decide(observation, NOW)
    status = compose(observation, decision, NOW).document()
    name = str(status["phase"]).lower()
    metadata = {"name": name, "namespace": "team-a", "uid": UID, "generation": 2}
    return {
        "apiVersion": "simplerl.io/v1alpha1",
        "kind": "SimpleRLJob",
        "metadata": metadata,
        "spec": documents.spec(),
        "status": status,
    }


def in_phase(phase: Phase) -> dict[str, Any]:
    ended = [{"number": 1, "reason": "LostRank"}]
    return document(seen(submitted(attempts=ended)), Decision(phase=phase, reason="Because", message="a sentence"))


def test_every_phase_is_read_right() -> None:
    assert {phase.value for phase in Phase} <= set(HEALTH)
    expected = [HEALTH[phase.value] for phase in Phase]
    found = health.words([in_phase(phase) for phase in Phase])
    assert dict(zip(Phase, found, strict=True)) == dict(zip(Phase, expected, strict=True))


DECIDED = {
    "refused": (seen(inputs=Inputs(missing_claim="c")), ("Failed", "Degraded", "Failed")),
    "provisioning": (seen(started(), pods=()), HEALTH["Provisioning"]),
    "starting": (seen(submitted()), HEALTH["Starting"]),
    "training": (seen(submitted(), progress=progress(state="Training")), HEALTH["Training"]),
    "succeeded": (seen(submitted(), progress=progress(state="Succeeded")), HEALTH["Succeeded"]),
}


def test_what_the_rules_decide_is_read_right() -> None:
    found = health.words([document(observation) for observation, _ in DECIDED.values()])
    assert dict(zip(DECIDED, found, strict=True)) == {name: expected for name, (_, expected) in DECIDED.items()}


def test_before_the_operator_has_seen_a_spec_nothing_is_settled() -> None:
    fresh = in_phase(Phase.TRAINING)
    del fresh["status"]
    edited = in_phase(Phase.SUCCEEDED)
    edited["metadata"]["generation"] = 3
    # kstatus takes an object without a status for current: its own rule for kinds that have none
    assert health.words([fresh, edited]) == [
        ("Current", "Progressing", "Unknown"),
        ("InProgress", "Progressing", "InProgress"),
    ]


def test_flux_can_wait_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    given = health.expressions()
    to_the_end = {**given, "current": given["current"].replace("'Ready'", "'Succeeded'")}
    monkeypatch.setattr(health, "expressions", lambda: to_the_end)
    phases = (Phase.STARTING, Phase.TRAINING, Phase.SUCCEEDED, Phase.FAILED)
    found = [flux for _, _, flux in health.words([in_phase(phase) for phase in phases])]
    assert found == ["InProgress", "InProgress", "Current", "Failed"]


def test_argo_cd_shows_why() -> None:
    (answer,) = health.read([in_phase(Phase.FAILED)])
    assert answer["argo"]["message"] == "Because: a sentence"
    assert answer["kstatus"]["message"] == "a sentence"


def test_the_config_map_holds_the_code() -> None:
    config = yaml12.load((health.ROOT / "deploy/argocd/argocd-cm.yaml").read_text("utf-8"))
    assert config["data"] == {"resource.customizations.health.simplerl.io_SimpleRLJob": health.LUA}


@pytest.mark.parametrize("wrong", ["", "return 1", "return {status = obj.status.nothing.more}"])
def test_code_that_does_not_work_would_be_noticed(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setattr(health, "LUA", wrong)
    with pytest.raises(AssertionError, match=r"Lua"):
        health.words([in_phase(Phase.TRAINING)])
