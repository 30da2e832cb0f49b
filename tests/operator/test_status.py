"""From decisions to statuses: conditions, figures, columns, and what is worth a write."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator import documents
from tests.operator.observations import (
    NOW,
    OOM_POD,
    all_pods,
    job,
    locked,
    progress,
    ray_cluster,
    seen,
    started,
    submitted,
)

from simplerl_api.status import Phase, Status
from simplerl_operator.clock import duration, rfc3339, seconds
from simplerl_operator.decide import figures, happenings
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose, log_tail, worth_writing
from simplerl_operator.observe.observation import Head, Inputs, Observation


def status_of(observation: Observation, now: float = NOW) -> Status:
    return compose(observation, decide(observation, now), now)


def conditions(status: Status) -> dict[str, str]:
    return {c.type: c.status for c in status.conditions}


KSTATUS = [
    ("refused", seen(inputs=Inputs(missing_claim="c")), "Pending", ("False", "False", "True")),
    ("provisioning", seen(started(), pods=()), "Provisioning", ("False", "True", "False")),
    ("starting", seen(submitted()), "Starting", ("False", "True", "False")),
    ("training", seen(submitted(), progress=progress(state="Training")), "Training", ("True", "False", "False")),
    ("succeeded", seen(submitted(), progress=progress(state="Succeeded")), "Succeeded", ("True", "False", "False")),
    ("failed", seen(submitted(), cluster=None), "Failed", ("False", "False", "True")),
]


@pytest.mark.parametrize(("observation", "phase", "expected"), [k[1:] for k in KSTATUS], ids=[k[0] for k in KSTATUS])
def test_kstatus_reads(observation: Observation, phase: str, expected: tuple[str, str, str]) -> None:
    status = status_of(observation)
    by_type = conditions(status)
    assert status.phase == phase
    assert (by_type["Ready"], by_type["Reconciling"], by_type["Stalled"]) == expected
    assert {c.observed_generation for c in status.conditions} == {2} == {status.observed_generation}


def test_a_condition_keeps_its_time_while_its_status_does_not_change() -> None:
    first = status_of(seen(started(), pods=()))
    later = status_of(seen(first.document(), pods=all_pods()[:2]), NOW + 60)
    times = {c.type: c.last_transition_time for c in later.conditions}
    assert set(times.values()) == {rfc3339(NOW)}
    assert next(c for c in later.conditions if c.type == "Ready").message == "2 of 4 pods are ready"


def test_the_start_fixes_plan_and_times() -> None:
    status = status_of(seen(inputs=Inputs()))
    assert status.start_time == status.attempt_start_time == rfc3339(NOW)
    assert status.attempt == 1
    assert status.plan is not None
    assert status.plan.image == "registry.example/trainer:1"
    assert status.cluster is None


def test_a_refused_job_has_no_start() -> None:
    assert status_of(seen(inputs=Inputs(missing_claim="c"))).start_time is None


def test_once_the_start_is_written_the_plan_is_not_made_again() -> None:
    before = started()
    before["plan"]["shmSize"] = "3Gi"
    assert job(before).plan.shm_size == "3Gi"  # type: ignore[union-attr]


def test_the_set_of_pods_is_kept_once_all_were_ready() -> None:
    status = status_of(seen(started(), head=Head(silence="refused")))
    assert status.cluster is not None
    assert status.cluster.pod_set is not None
    assert status.cluster.submission_id is None
    assert status_of(seen(started(), head=locked("PENDING"))).cluster.pod_set == status.cluster.pod_set  # type: ignore[union-attr]
    assert status_of(seen(started(), head=locked("PENDING"))).cluster.submission_id == "tiny-0a1b2-1"  # type: ignore[union-attr]


FIGURES = {
    "state": "Training",
    "step": 37,
    "metrics": {"reward": 0.414159, "kl": 5.12345e-7, "responseLength": 123456.7},
    "etaSeconds": 99.6,
    "samplesPerSecond": 12.3456,
}


def test_figures_have_four_digits_and_columns_are_strings() -> None:
    told = progress(**FIGURES, evaluations=[documents.evaluation("gsm8k", 0.3, 0.61234, 30)])
    status = status_of(seen(submitted(), progress=told))
    assert status.training is not None
    assert status.training.metrics == {"kl": 5.123e-07, "responseLength": 123500.0, "reward": 0.4142}
    assert (status.training.eta_seconds, status.training.samples_per_second) == (100, 12.35)
    assert status.training.progress_percent == 61
    assert status.summary is not None
    assert status.summary.document() == {
        "step": "37/60", "progress": "61%", "reward": "0.41", "eval": "gsm8k 0.61", "duration": "", "model": "tiny"
    }  # fmt: skip


MODELS = [({"tiny": {}}, "tiny"), ({"path": "/models/Qwen2.5-7B/"}, "Qwen2.5-7B"), ({"path": "/"}, "/")]


@pytest.mark.parametrize(("model", "name"), MODELS, ids=[m[1] for m in MODELS])
def test_the_model_column_reads(model: dict[str, Any], name: str) -> None:
    spec = job(model=model).spec
    assert spec is not None
    assert figures.model_name(spec.model) == name


DURATIONS = {0: "0s", 59: "59s", 60: "1m", 312: "5m12s", 3600: "1h", 3725: "1h2m", 86400: "1d", 273600: "3d4h"}


@pytest.mark.parametrize(("length", "text"), DURATIONS.items(), ids=DURATIONS.values())
def test_durations_read(length: int, text: str) -> None:
    assert duration(length) == text


@given(st.integers(0, 4_000_000_000))
def test_times_survive_their_text(time: int) -> None:
    assert seconds(rfc3339(time)) == time


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_rounding_stays_close_and_is_stable(value: float) -> None:
    rounded = figures.rounded(value)
    assert abs(rounded - value) <= abs(value) * 1e-3 or abs(value) < 1e-300
    assert figures.rounded(rounded) == rounded


@given(st.lists(st.text(max_size=3000), max_size=50))
def test_a_log_keeps_to_four_kibibytes(lines: list[str]) -> None:
    text = log_tail(tuple(lines))
    assert len(text.encode()) <= 4096
    assert not text or ("\n".join(lines)).endswith(text)


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["Starting", "Training"])), min_size=1, max_size=12))
def test_steps_never_fall_whatever_the_driver_says(told: list[tuple[int, str]]) -> None:
    document, steps = submitted(), []
    for step, state in told:
        status = status_of(seen(document, progress=progress(step=step, state=state)))
        document = json.loads(json.dumps(status.document()))
        steps.append(status.training.step if status.training else 0)
    assert steps == sorted(steps)


def test_a_job_that_only_evaluates_is_done_when_it_has_succeeded() -> None:
    held_out = documents.evaluation("held-out", 0.5, 0.5, 0)
    training = status_of(seen(submitted(), progress=progress(state="Training", totalSteps=0, evaluations=[held_out])))
    assert training.training is not None
    assert (training.training.progress_percent, training.summary.step) == (0, "0/0")  # type: ignore[union-attr]
    done = progress(state="Succeeded", totalSteps=0, evaluations=[held_out])
    status = status_of(seen(training.document(), progress=done))
    assert status.training is not None
    assert (status.phase, status.training.progress_percent) == (Phase.SUCCEEDED, 100)
    assert next(c.message for c in status.conditions if c.type == "Succeeded") == "the evaluation is done"
    assert status.summary is not None
    assert (status.summary.progress, status.summary.eval) == ("100%", "held-out 0.50")


def written(before: Observation, after: Observation, now: float = NOW) -> float | None:
    first = status_of(before)
    second = compose(after, decide(after, now), now)
    return worth_writing(first, second, now, 10.0)


def follow_up(first: Observation, **changes: Any) -> Observation:
    return seen(status_of(first).document(), **{"progress": first.progress, **changes})


TRAINING = seen(submitted(), progress=progress(**FIGURES))


def test_the_same_again_is_never_written() -> None:
    assert written(TRAINING, follow_up(TRAINING), NOW + 100) is None


def test_a_time_alone_is_never_written() -> None:
    later = progress(**{**FIGURES, "etaSeconds": 50.0, "lastProgress": NOW + 90})
    assert written(TRAINING, follow_up(TRAINING, progress=later), NOW + 100) is None


def test_a_new_step_waits_for_its_turn() -> None:
    later = progress(**{**FIGURES, "step": 38})
    assert written(TRAINING, follow_up(TRAINING, progress=later), NOW + 4) == 6.0
    assert written(TRAINING, follow_up(TRAINING, progress=later), NOW + 11) == 0.0


def test_a_phase_is_written_at_once() -> None:
    later = progress(**{**FIGURES, "state": "Succeeded"})
    assert written(TRAINING, follow_up(TRAINING, progress=later), NOW + 1) == 0.0


def test_a_readiness_probe_that_fails_while_training_is_not_written() -> None:
    assert written(TRAINING, follow_up(TRAINING, pods=all_pods(ready=False))) is None


def test_step_0_of_a_driver_that_starts_is_no_news_and_its_first_figures_in_training_are() -> None:
    asked = seen(submitted())
    starting = seen(status_of(asked).document(), progress=progress(state="Starting"))
    assert written(asked, starting) is None
    assert written(asked, seen(status_of(asked).document(), progress=progress(**FIGURES))) == 0.0


def test_events_tell_transitions_only() -> None:
    lives = [
        status_of(seen(inputs=Inputs())),
        status_of(seen(started(), pods=())),
        status_of(seen(started(), pods=all_pods()[:1])),
        status_of(seen(submitted())),
        status_of(TRAINING),
        status_of(seen(submitted(), progress=progress(**{**FIGURES, "step": 38}))),
        status_of(seen(submitted(), cluster=None)),
    ]
    told = [h for pair in itertools.pairwise([Status(), *lives]) for h in happenings.between(*pair)]
    assert [(h.reason, h.warning) for h in told] == [
        ("NotDurable", True),
        ("CreatingCluster", False),
        ("Training", False),
        ("ClusterLost", True),
    ]


PHASE_ORDER = [Phase.PENDING, Phase.PROVISIONING, Phase.STARTING, Phase.TRAINING, Phase.SUCCEEDED, Phase.FAILED]

OBSERVED = st.fixed_dictionaries(
    {},
    optional={
        "cluster": st.sampled_from([None, ray_cluster(), ray_cluster(conditions={}), ray_cluster(deleting=True)]),
        "pods": st.sampled_from([(), all_pods(), all_pods(ready=False), all_pods()[:2], all_pods(phase="Failed")]),
        "head": st.sampled_from([None, locked(), locked("PENDING"), locked("FAILED"), locked("STOPPED")]),
        "progress": st.sampled_from(
            [None, progress(), progress(state="Training", step=3), progress(state="Succeeded", step=60)]
        ),
        "inputs": st.sampled_from([Inputs(), Inputs(missing_claim="c")]),
        "refusal": st.sampled_from(["", "no"]),
    },
)


@given(st.lists(st.tuples(OBSERVED, st.floats(0, 400)), min_size=1, max_size=15))
def test_whatever_is_seen_a_status_is_valid_and_what_is_over_stays_over(
    history: list[tuple[dict[str, Any], float]],
) -> None:
    document: dict[str, Any] = {}
    now, over = NOW, None
    for fields, pause in history:
        now += pause
        observation = seen(document, **fields)
        status = compose(observation, decide(observation, now), now)
        document = json.loads(json.dumps(status.document()))
        assert Status.model_validate(document) == status
        if over is not None:
            assert document == over
        if status.completion_time is not None:
            assert status.phase in (Phase.SUCCEEDED, Phase.FAILED)
            over = document
        kstatus = conditions(status)
        assert [kstatus["Ready"], kstatus["Reconciling"], kstatus["Stalled"]].count("True") == 1


def test_that_a_container_ran_out_of_memory_is_added_to_an_attempt_that_had_ended() -> None:
    # 4 (ray#62340): a driver tells of a lost rank before kubelet tells of its container
    lost = {"reason": "LostRank", "message": "rank 1 is gone"}
    retried = job(submitted(), recovery={"backoffLimit": 3})
    first = status_of(seen(job=retried, progress=progress(state="Failed", failure=lost)))
    assert (first.attempts[0].message, first.attempts[0].terminations) == ("rank 1 is gone", [])
    ended = (*all_pods()[:3], OOM_POD)
    later = job(first.document(), recovery={"backoffLimit": 3})
    second = status_of(seen(job=later, pods=ended))
    assert second.attempts[0].terminations == list(OOM_POD.terminations)
    message = f"rank 1 is gone; worker pod {OOM_POD.name} ended: container ray-worker OOMKilled (exit code 137)"
    assert second.attempts[0].message == message
    third = status_of(seen(job=job(second.document(), recovery={"backoffLimit": 3}), pods=ended))
    assert third.attempts == second.attempts, "it is told once"
    assert next(c for c in third.conditions if c.type == "Ready").message == f"attempt 1 ended: {message}"
