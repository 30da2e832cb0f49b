"""What a rank shares out and what stays on its GPU: the least that makes it fit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api import validation
from simplerl_api.memory import GIB, MemoryEstimate, MemoryPart, Phase
from simplerl_api.model_shape import ModelShape
from simplerl_api.plan import make_plan
from simplerl_api.residence import USABLE, Residence, Sharding, host_copies, reside, shardings

HALF_A_BILLION = ModelShape(
    vocabulary=151936, hidden=896, intermediate=4864, layers=24, heads=14, key_value_heads=2, head=64, tied=True
)
"""Qwen2.5-0.5B."""


def found(gpus: int = 1, cpu_only: bool = False, **training: Any) -> list[Sharding]:
    document = {
        "model": {"path": "/models/m"},
        "data": {"train": {"file": "/data/q.jsonl"}, "maxPromptTokens": 256},
        "rewards": [{"name": "math", "math": {}}],
        "rollout": {"promptsPerStep": 256, "samplesPerPrompt": 4, "sampling": {"maxNewTokens": 512}},
        "training": {"steps": 1, "trainBatchSize": 256, **training},
        "cluster": {"gpus": gpus, "cpuOnly": cpu_only},
    }
    spec = validation.parse_spec(document)
    return list(shardings(HALF_A_BILLION, spec, make_plan(spec)))


@pytest.mark.parametrize(
    ("settings", "stages"),
    [
        pytest.param({"gpus": 8}, [1, 2, 3], id="several ranks on GPUs"),
        pytest.param({"gpus": 8, "zeroStage": 2}, [2], id="the spec says it"),
        pytest.param({"gpus": 8, "offload": {"optimizer": True, "parameters": True}}, [3], id="weights on the host"),
        pytest.param({"gpus": 8, "cpu_only": True}, [3], id="on CPU"),
        pytest.param({"gpus": 1}, [1], id="one rank"),
    ],
)
def test_stages_that_a_job_may_take(settings: dict[str, Any], stages: list[int]) -> None:
    assert [int(s.zero_stage) for s in found(**settings)] == stages


@given(
    share=st.sampled_from([0.0, 0.3, 0.9]),
    gib=st.integers(1, 400),
    stage=st.sampled_from([None, 0, 1, 3]),
    gpus=st.sampled_from([1, 8]),
)
def test_a_rank_does_the_least_that_fits(share: float, gib: int, stage: int | None, gpus: int) -> None:
    own = found(gpus, zeroStage=stage)
    room, got = gib * GIB * USABLE, reside(own, share, gib * GIB)
    (taken,) = (s for s in own if s.zero_stage is got.zero_stage)
    if not got.sleeps and share:
        needed = (taken.checkpointed if got.gradient_checkpointing else taken.plain).training(
            frozen=not got.frozen_leave
        )
        assert needed + share * gib * GIB <= room
    for sharding in own:
        if got.gradient_checkpointing:
            assert sharding.plain.training(frozen=False) > room, "without it they do not fit, whatever is shared"
        if got.frozen_leave and not got.gradient_checkpointing:
            assert sharding.plain.training() > room
    assert share or not got.sleeps, "nobody to sleep for"
    larger = reside(own, share, 2 * gib * GIB)
    assert larger.gradient_checkpointing <= got.gradient_checkpointing


@pytest.mark.parametrize(
    ("gib", "share", "expected"),
    [
        pytest.param(200, 0.3, (1, False, False, False), id="everything fits"),
        pytest.param(141, 0.9, (1, True, False, False), id="ranks and engines take turns"),
        pytest.param(141, 0.0, (1, False, False, False), id="no engines on this GPU"),
        pytest.param(24, 0.9, (1, True, True, True), id="a small card"),
    ],
)
def test_residence_of_half_a_billion_parameters_on_one_rank(
    gib: int, share: float, expected: tuple[int, bool, bool, bool]
) -> None:
    assert flat(reside(found(), share, gib * GIB)) == expected


def of(stage: int, trained: int, frozen: int, passes: int) -> Sharding:
    """A rank that needs so many GiB."""
    sizes = {"actor: weights": trained, "frozen reference: weights": frozen, "activations of a pack": passes}
    plain, again = (
        MemoryEstimate(
            parts=tuple(MemoryPart(phase=Phase.TRAINING, name=n, bytes=s * GIB) for n, s in held.items()),
            gradient_checkpointing=checkpointing,
        )
        for held, checkpointing in ((sizes, False), (sizes | {"activations of a pack": 0}, True))
    )
    return Sharding(zero_stage=stage, plain=plain, checkpointed=again)


def flat(residence: Residence) -> tuple[int, bool, bool, bool]:
    return int(residence.zero_stage), residence.sleeps, residence.frozen_leave, residence.gradient_checkpointing


STAGES = [of(1, 60, 10, 20), of(2, 40, 10, 20), of(3, 20, 5, 20)]


@pytest.mark.parametrize(
    ("gib", "share", "expected"),
    [
        pytest.param(98, 0.0, (1, False, False, False), id="stage 1 fits"),
        pytest.param(97, 0.0, (2, False, False, False), id="stage 1 does not"),
        pytest.param(50, 0.0, (3, False, False, False), id="stage 3 alone"),
        pytest.param(98, 0.3, (3, False, False, False), id="sharing more costs less than taking turns"),
        pytest.param(98, 0.9, (1, True, False, False), id="taking turns at the least stage that fits"),
        pytest.param(45, 0.9, (3, True, True, False), id="and frozen models leave"),
        pytest.param(30, 0.9, (3, True, False, True), id="and activations are recomputed"),
        pytest.param(10, 0.9, (3, True, True, True), id="nothing fits"),
    ],
)
def test_the_least_sharding_that_spares_what_costs_more(
    gib: int, share: float, expected: tuple[int, bool, bool, bool]
) -> None:
    assert flat(reside(STAGES, share, gib * GIB)) == expected


@pytest.mark.parametrize(
    ("sleeps", "frozen_leave", "gib"),
    [
        pytest.param(False, False, 0, id="all stays"),
        pytest.param(False, True, 10, id="frozen models leave"),
        pytest.param(True, False, 70, id="a rank that sleeps keeps all but its passes"),
    ],
)
def test_what_leaves_the_gpu_is_in_the_host_s_memory(sleeps: bool, frozen_leave: bool, gib: int) -> None:
    residence = Residence(zero_stage=1, sleeps=sleeps, frozen_leave=frozen_leave, gradient_checkpointing=False)
    assert host_copies(STAGES[0].plain, residence) == gib * GIB
