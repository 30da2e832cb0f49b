"""The planner: for every spec either a layout in which all is used and nothing twice, or a sentence."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from simplerl_api import validation, yaml12
from simplerl_api.plan import PlacementKind, PlanError, make_plan
from simplerl_api.spec.job import Spec
from simplerl_api.spec.training import Precision, ZeroStage

ROOT = Path(__file__).parents[2]


def spec(**sections: Any) -> Spec:
    document = yaml12.load_file(ROOT / "examples/tiny.yaml")["spec"]
    for name, section in sections.items():
        document[name] = section
    return validation.parse_spec(document)


def test_the_example_has_two_ranks_and_an_engine_on_nodes_of_their_own() -> None:
    plan = make_plan(spec(), image="trainer:1")
    assert (plan.nodes, plan.ranks, plan.engines, plan.gpus_per_node) == (3, 2, 1, 1)
    assert [(s.node, s.gpu, s.rank, s.engines) for s in plan.slots()] == [
        (0, 0, 0, ()),
        (1, 0, 1, ()),
        (2, 0, None, (0,)),
    ]
    assert (plan.zero_stage, plan.precision, plan.durable) == (ZeroStage.PARAMETERS, Precision.FP32, True)
    assert (plan.optimizer_steps_per_step, plan.image) == (4, "trainer:1")


def test_four_nodes_of_eight_hold_a_rank_and_an_engine_on_every_gpu() -> None:
    plan = make_plan(
        spec(
            cluster={"gpus": 32, "gpusPerNode": 8},
            placement={"colocated": {}},
            rollout={"promptsPerStep": 1024, "samplesPerPrompt": 8, "sampling": {"maxNewTokens": 3000}},
            training={"steps": 120, "trainBatchSize": 128},
        )
    )
    assert (plan.placement, plan.nodes, plan.ranks, plan.engines) == (PlacementKind.COLOCATED, 4, 32, 32)
    assert plan.optimizer_steps_per_step == 64
    assert plan.precision is Precision.BF16
    assert all(s.rank == s.index and s.engines == (s.index,) for s in plan.slots())


def test_fewer_gpus_than_a_node_holds_make_one_smaller_node() -> None:
    plan = make_plan(spec(cluster={"gpus": 3, "cpuOnly": True}))
    assert (plan.nodes, plan.gpus_per_node) == (1, 3)


def test_two_engines_share_a_slot() -> None:
    plan = make_plan(spec(rollout={"promptsPerStep": 64, "enginesPerGpu": 2, "sampling": {"maxNewTokens": 8}}))
    assert plan.slots()[2].engines == (0, 1)


@given(
    gpus=st.integers(1, 64),
    per_node=st.integers(1, 8),
    training=st.none() | st.integers(1, 64),
    per_gpu=st.none() | st.integers(1, 8),
    engines=st.none() | st.integers(1, 80),
)
def test_a_layout_uses_every_gpu_and_numbers_every_rank_and_engine_once(
    gpus: int, per_node: int, training: int | None, per_gpu: int | None, engines: int | None
) -> None:
    rollout: dict[str, Any] = {"promptsPerStep": 64, "samplesPerPrompt": 8, "sampling": {"maxNewTokens": 8}}
    if per_gpu:
        rollout["enginesPerGpu"] = per_gpu
    if engines:
        rollout["engines"] = engines
    placement = {"disaggregated": {"trainingGpus": training}} if training else {"colocated": {}}
    asked = spec(cluster={"gpus": gpus, "gpusPerNode": per_node, "cpuOnly": True}, placement=placement, rollout=rollout)
    try:
        plan = make_plan(asked)
    except PlanError as e:
        assert any(field in str(e) for field in ("cluster.gpus", "trainingGpus", "rollout.engines"))
        return
    slots = plan.slots()
    assert plan.nodes * plan.gpus_per_node == gpus == len(slots)
    assert [s.rank for s in slots if s.rank is not None] == list(range(plan.ranks))
    assert [e for s in slots for e in s.engines] == list(range(plan.engines))
    assert len({(s.node, s.gpu) for s in slots}) == gpus
    counts = [len(s.engines) for s in slots if s.rank is None or plan.placement is PlacementKind.COLOCATED]
    assert max(counts) - min(counts) <= 1
    if training:
        assert all(s.rank is None or not s.engines for s in slots)
