"""The planner: for every spec either a layout in which all is used and nothing twice, or a sentence."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api import validation, yaml12
from simplerl_api.plan import PlacementKind, Plan, make_plan
from simplerl_api.plan_error import PlanError
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


GPU = {"gpus": 2, "gpusPerNode": 2}


@pytest.mark.parametrize(
    ("parameters", "changes", "engines"),
    [
        pytest.param(494_032_768, {}, 8, id="a small model: four on each GPU"),
        pytest.param(1_543_714_304, {}, 2, id="a larger one: one on each GPU"),
        pytest.param(None, {}, 2, id="unknown to the planner"),
        pytest.param(494_032_768, {"cluster": GPU | {"cpuOnly": True}}, 2, id="on CPUs"),
        pytest.param(494_032_768, {"rollout": {"enginesPerGpu": 2}}, 4, id="as the spec says"),
        pytest.param(494_032_768, {"rollout": {"engines": 1}}, 1, id="as the spec says in all"),
        pytest.param(494_032_768, {"rollout": {"tensorParallelSize": 2}}, 1, id="an engine over both GPUs"),
    ],
)
def test_engines_by_the_models_size(parameters: int | None, changes: dict[str, Any], engines: int) -> None:
    rollout = {"promptsPerStep": 64, "sampling": {"maxNewTokens": 8}} | changes.get("rollout", {})
    made = spec(placement={"colocated": {}}, cluster=changes.get("cluster", GPU), rollout=rollout)
    assert make_plan(made, parameters=parameters).engines == engines


def laid_out(plan: Plan) -> str:
    """The slots as a text: a line a node, each slot with its rank and its engines."""
    lines: dict[int, list[str]] = {}
    for s in plan.slots():
        rank = "" if s.rank is None else f"r{s.rank}"
        engines = "".join(f" e{e}" for e in s.engines)
        lines.setdefault(s.node, []).append((rank + engines).strip())
    return "\n".join(" | ".join(slots) for slots in lines.values())


FOUR_OF_EIGHT = {"gpus": 32, "gpusPerNode": 8}


@pytest.mark.parametrize(
    ("placement", "rollout", "golden"),
    [
        pytest.param(
            {"colocated": {}},
            {"tensorParallelSize": 4},
            """\
r0 e0 | r1 e0 | r2 e0 | r3 e0 | r4 e1 | r5 e1 | r6 e1 | r7 e1
r8 e2 | r9 e2 | r10 e2 | r11 e2 | r12 e3 | r13 e3 | r14 e3 | r15 e3
r16 e4 | r17 e4 | r18 e4 | r19 e4 | r20 e5 | r21 e5 | r22 e5 | r23 e5
r24 e6 | r25 e6 | r26 e6 | r27 e6 | r28 e7 | r29 e7 | r30 e7 | r31 e7""",
            id="colocated, an engine on four GPUs",
        ),
        pytest.param(
            {"disaggregated": {"trainingGpus": 12}},
            {"tensorParallelSize": 2, "enginesPerGpu": 2},
            """\
r0 | r1 | r2 | r3 | r4 | r5 | r6 | r7
r8 | r9 | r10 | r11 | e0 e1 | e0 e1 | e2 e3 | e2 e3
e4 e5 | e4 e5 | e6 e7 | e6 e7 | e8 e9 | e8 e9 | e10 e11 | e10 e11
e12 e13 | e12 e13 | e14 e15 | e14 e15 | e16 e17 | e16 e17 | e18 e19 | e18 e19""",
            id="disaggregated, two engines on each pair of GPUs",
        ),
        pytest.param(
            {"disaggregated": {"trainingGpus": 8}},
            {"tensorParallelSize": 8, "engines": 4},
            """\
r0 | r1 | r2 | r3 | r4 | r5 | r6 | r7
e0 e1 | e0 e1 | e0 e1 | e0 e1 | e0 e1 | e0 e1 | e0 e1 | e0 e1
e2 | e2 | e2 | e2 | e2 | e2 | e2 | e2
e3 | e3 | e3 | e3 | e3 | e3 | e3 | e3""",
            id="disaggregated, engines on whole nodes, more of them than nodes",
        ),
        pytest.param(
            {"colocated": {}},
            {"enginesPerGpu": 1},
            "\n".join(" | ".join(f"r{i} e{i}" for i in range(8 * n, 8 * n + 8)) for n in range(4)),
            id="colocated, an engine on each GPU",
        ),
    ],
)
def test_four_nodes_of_eight(placement: dict[str, Any], rollout: dict[str, Any], golden: str) -> None:
    sizes = {"promptsPerStep": 64, "sampling": {"maxNewTokens": 8}}
    plan = make_plan(spec(cluster=FOUR_OF_EIGHT, placement=placement, rollout=sizes | rollout))
    assert (plan.nodes, plan.gpus_per_node) == (4, 8)
    assert laid_out(plan) == golden


@given(
    gpus=st.integers(1, 64),
    per_node=st.integers(1, 8),
    training=st.none() | st.integers(1, 64),
    per_gpu=st.none() | st.integers(1, 8),
    engines=st.none() | st.integers(1, 80),
    size=st.sampled_from([1, 2, 4, 8]),
)
def test_a_layout_uses_every_gpu_and_numbers_every_rank_and_engine_once(
    gpus: int, per_node: int, training: int | None, per_gpu: int | None, engines: int | None, size: int
) -> None:
    rollout: dict[str, Any] = {
        "promptsPerStep": 64, "samplesPerPrompt": 8, "sampling": {"maxNewTokens": 8}, "tensorParallelSize": size,
    }  # fmt: skip
    if per_gpu:
        rollout["enginesPerGpu"] = per_gpu
    if engines:
        rollout["engines"] = engines
    placement = {"disaggregated": {"trainingGpus": training}} if training else {"colocated": {}}
    asked = spec(cluster={"gpus": gpus, "gpusPerNode": per_node, "cpuOnly": True}, placement=placement, rollout=rollout)
    try:
        plan = make_plan(asked)
    except PlanError as e:
        assert any(field in str(e) for field in ("cluster.gpus", "trainingGpus", "rollout.engines", "tensorParallel"))
        return
    slots = plan.slots()
    assert plan.nodes * plan.gpus_per_node == gpus == len(slots)
    assert [s.rank for s in slots if s.rank is not None] == list(range(plan.ranks))
    assert sorted(e for s in slots for e in s.engines) == sorted([*range(plan.engines)] * size)
    for worker_slots in plan.engine_slots().values():
        assert len({s.node for s in worker_slots}) == 1
        first = worker_slots[0].index
        assert [s.index for s in worker_slots] == list(range(first, first + size))
    assert len({(s.node, s.gpu) for s in slots}) == gpus
    counts = [len(s.engines) for s in slots if s.rank is None or plan.placement is PlacementKind.COLOCATED]
    assert max(counts) - min(counts) <= 1
    if training:
        assert all(s.rank is None or not s.engines for s in slots)


@given(
    nodes=st.integers(2, 12), training=st.integers(1, 11), per_node=st.integers(1, 8), each=st.integers(1, 8),
    least=st.integers(1, 100), wanted=st.integers(1, 800),
)  # fmt: skip
def test_pods_of_engines_that_come_and_go_hold_no_rank(
    nodes: int, training: int, per_node: int, each: int, least: int, wanted: int
) -> None:
    most = (nodes - training) * per_node * each
    if training >= nodes or least > most or wanted > most:
        return
    rollout = {"promptsPerStep": 64, "elastic": {"minEngines": least, "maxEngines": most}}
    plan = make_plan(
        spec(
            cluster={"gpus": nodes * per_node, "gpusPerNode": per_node, "cpuOnly": True},
            placement={"disaggregated": {"trainingGpus": training * per_node}},
            rollout=rollout | {"sampling": {"maxNewTokens": 8}},
        )
    )
    assert (plan.training_nodes, plan.engines, plan.min_engines) == (training, most, least)
    assert {s.node for s in plan.slots() if s.rank is not None} == set(range(training))
    assert training < plan.least_nodes <= plan.nodes
    slots, holds = plan.slots(), plan.nodes_for(wanted)
    within = {e for s in slots if s.node < holds for e in s.engines}
    assert len(within) >= wanted, "so many pods hold the engines that are wanted"
    assert len(within - {e for s in slots if s.node == holds - 1 for e in s.engines}) < wanted, "and no pod too many"
    assert plan.steady().least_nodes == plan.nodes
